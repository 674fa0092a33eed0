"""A node that was started here and can be disturbed: stopped, killed, restarted, its clock changed, its file table filled.

It ends with this process. It listens on free ports, which are read from its output and change with each restart. Its wall
clock can be changed if libfaketime is installed.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from ..children import follow_parent, wait_for_end
from ..errors import NodeFailed

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
FAKETIME = (
    *("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"),
    "/usr/lib/faketime/libfaketime.so.1",
)
LIMITS: dict[str, int] = {
    "log_messages_max": 200,
    "log_age_ms_max": 180_000,
    "stream_window_bytes_max": 65_536,
    "windows_bytes_max": 33_554_432,
    "logs_bytes_max": 67_108_864,
    "snapshots_bytes_max": 16_777_216,
    "partial_bytes_max": 16_777_216,
    "feed_bytes_max": 33_554_432,
    "ping_interval_ms": 2_000,
    "idle_ms_max": 20_000,
    "resume_token_interval_ms": 500,
}
"""Small limits, so that every one is reached within minutes. Their sum is the expected memory."""
QUICK = {"drain.spread_ms": 500, "drain.grace_ms": 1_000}
FILES_MAX = 1_500
MEMORY_FREE_BYTES = 48 << 20
"""Additional memory for Python and its libraries: admin pages, statistics, allocators."""


def find_faketime() -> str | None:
    """The library that changes a process's clock, if it is installed."""
    return next((path for path in FAKETIME if Path(path).exists()), None)


def stated_growth_bytes() -> int:
    """The expected growth of this node's memory, computed from its limits."""
    names = ("windows_bytes_max", "logs_bytes_max", "snapshots_bytes_max", "partial_bytes_max", "feed_bytes_max")
    return sum(LIMITS[name] for name in names) + MEMORY_FREE_BYTES


class Node:
    """One node at a time. `command` is the program; it must print where it listens."""

    def __init__(
        self, directory: Path, command: list[str] | None = None, settings: Mapping[str, object] | None = None
    ) -> None:
        self._directory = directory
        self._command = command or [sys.executable, "-m", "godwit", "serve"]
        self._settings = dict(settings or {})
        self._process: asyncio.subprocess.Process | None = None
        self._clock_file = directory / "clock"
        self._log = directory / "node.log"
        self.address: tuple[str, int] = ("127.0.0.1", 0)
        self.starts = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def start(self) -> None:
        """Returns when it listens. Raises NodeFailed with the end of its log."""
        options = [
            *("--client", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--set", "logging.level=warning"),
            *(word for name, value in LIMITS.items() for word in ("--set", f"limits.{name}={value}")),
            *(word for name, value in QUICK.items() for word in ("--set", f"{name}={value}")),
            *(word for name, value in self._settings.items() for word in ("--set", f"{name}={value}")),
        ]
        environment = dict(os.environ)
        if (faketime := find_faketime()) is not None:
            self._clock_file.write_text("+0\n")
            environment |= {
                "LD_PRELOAD": faketime,
                "FAKETIME_TIMESTAMP_FILE": str(self._clock_file),
                "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            }
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                *options,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=environment,
                preexec_fn=_prepare(),
            )
        self.address = await self._read_address(self._process)
        self.starts += 1

    async def _read_address(self, process: asyncio.subprocess.Process) -> tuple[str, int]:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                while line := (await process.stdout.readline()).decode():
                    if line.startswith("listening "):
                        words = dict(word.split("=", 1) for word in line.split()[1:])
                        host, _, port = words["client"].rpartition(":")
                        return host, int(port)
        except TimeoutError:
            process.kill()
        await wait_for_end(process)
        raise NodeFailed(f"the node did not listen: {self.last_words()}")

    def last_words(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace")[-500:].strip()

    async def kill(self) -> None:
        """Kill it, as a power loss does."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await wait_for_end(self._process)

    async def drain(self) -> None:
        """Ask it to stop; it drains."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            try:
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await wait_for_end(self._process)
            except TimeoutError:
                await self.kill()
                raise NodeFailed(f"the node did not leave within {STOP_TIMEOUT_S:.0f} s") from None

    def freeze(self, is_frozen: bool) -> None:
        if self.pid is not None:
            os.kill(self.pid, signal.SIGSTOP if is_frozen else signal.SIGCONT)

    def move_clock(self, by_s: float) -> None:
        """Set its wall clock ahead or back by this time."""
        beside = self._clock_file.with_suffix(".new")
        beside.write_text(f"{by_s:+.0f}\n")
        beside.replace(self._clock_file)

    def memory_bytes(self) -> int:
        """Resident memory; 0 while there is no node."""
        try:
            return int(psutil.Process(self.pid).memory_info().rss) if self.pid is not None else 0
        except psutil.NoSuchProcess:
            return 0

    def cpu_s(self) -> float:
        try:
            times = psutil.Process(self.pid).cpu_times() if self.pid is not None else None
            return 0.0 if times is None else times.user + times.system
        except psutil.NoSuchProcess:
            return 0.0

    @property
    def is_running(self) -> bool:
        return self.pid is not None


def _prepare() -> Callable[[], None]:
    """In the child process: end with the parent, and limit open files."""
    follow = follow_parent()

    def prepare() -> None:
        follow()
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        limit = FILES_MAX if hard == resource.RLIM_INFINITY else min(FILES_MAX, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    return prepare
