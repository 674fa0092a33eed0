"""A node in its own process, for tests that signal it, kill it, or measure its cost.

`testing.node()` runs one inside the test; this one can die. It listens on ports of its own choosing, read from its line.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from godwit.children import follow_parent, wait_for_end

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30


@dataclass
class NodeProcess:
    """A running node; `port` is where clients connect."""

    process: asyncio.subprocess.Process
    host: str
    port: int
    admin: str
    mqtt: str = ""

    @property
    def url(self) -> str:
        return f"ws://{self.host}:{self.port}"

    @property
    def admin_url(self) -> str:
        return f"http://{self.admin}"

    async def kill(self) -> None:
        """Kill it, as a power loss does: it notifies no client."""
        if self.process.returncode is None:
            self.process.kill()
        await wait_for_end(self.process)

    async def terminate(self) -> int:
        """Ask it to leave; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_TIMEOUT_S):
            return await self.process.wait()

    def memory_bytes(self) -> int:
        """Memory of its own: resident pages that no other process shares."""
        fields = dict(
            line.split(":", 1) for line in Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines()[1:]
        )
        return sum(int(fields[name].split()[0]) for name in ("Private_Clean", "Private_Dirty")) * 1024

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def start_node(
    settings: dict[str, object] | None = None,
    *,
    log: int | None = None,
    before: Sequence[str] = (),
    more: Sequence[str] = (),
) -> NodeProcess:
    """Start one with these settings, as `{"limits.log_messages_max": 10}`; returns when it listens. `log` is its
    standard error, as for a subprocess; `before` are words before its command, which begin it somewhere else. `more` are
    options of its command.
    """
    options = [word for key, value in (settings or {}).items() for word in ("--set", f"{key}={value}")]
    process = await asyncio.create_subprocess_exec(
        *before,
        *(
            sys.executable,
            "-m",
            "godwit",
            "serve",
            "--client",
            "127.0.0.1:0",
            "--mqtt",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ),
        *options,
        *more,
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
        preexec_fn=follow_parent(),
    )
    assert process.stdout is not None
    async with asyncio.timeout(START_TIMEOUT_S):
        while line := (await process.stdout.readline()).decode():
            if line.startswith("listening "):
                addresses = dict(word.split("=", 1) for word in line.split()[1:])
                host, _, port = addresses["client"].rpartition(":")
                return NodeProcess(process, host, int(port), addresses["admin"], addresses.get("mqtt", ""))
    raise RuntimeError(f"the node ended with {await wait_for_end(process)} before it listened")


@asynccontextmanager
async def running_node(
    settings: dict[str, object] | None = None, *, log: int | None = None, before: Sequence[str] = ()
) -> AsyncIterator[NodeProcess]:
    """A node that is killed when the block ends, if it still runs."""
    node = await start_node(settings, log=log, before=before)
    try:
        yield node
    finally:
        await node.kill()


async def is_allowed(driver: str) -> bool:
    """Whether this machine allows a driver: containers may forbid io_uring. A node that starts on none is an error."""
    if driver != "readiness":
        try:
            async with running_node({"node.driver": driver}):
                return True
        except RuntimeError:
            pass
    async with running_node({"node.driver": "readiness"}):
        return driver == "readiness"
