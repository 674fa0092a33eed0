"""A server process with dispatch in a folder, and the requests of the loads."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from godwit.children import follow_parent

TICKS = os.sysconf("SC_CLK_TCK")
OPTIONS = (
    *("--client", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--shards", "1"),
    *("--set", "dispatch.address=127.0.0.1:0"),
)


@dataclass(frozen=True, slots=True)
class Options:
    """The command's options. `receivers` 0: the load's default."""

    folder: Path
    receivers: int = 0
    seconds: float = 10.0


@dataclass
class Served:
    """A server process, and how to call it."""

    pid: int
    host: str
    port: int
    key: str
    numbers: Iterator[int]
    client: str = ""
    """The client address of the node in the same process."""

    def call(self, method: str, path: str, body: bytes | None = None, key: str = "") -> Any:
        headers = {"Authorization": f"Bearer {key or self.key}"}
        request = urllib.request.Request(f"http://{self.host}:{self.port}{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=600) as answered:
            return json.loads(answered.read() or b"null")

    def read_metric(self, name: str) -> float:
        """One of dispatch's metrics without labels."""
        headers = {"Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(f"http://{self.host}:{self.port}/metrics", headers=headers)
        with urllib.request.urlopen(request, timeout=600) as answered:
            lines = answered.read().decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.split()[0] == f"godwit_dispatch_{name}"))

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss_mb(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def rss_peak_mb(self) -> float:
        """The largest RSS since the process started."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) * 1_024 / 1e6


@asynccontextmanager
async def served(folder: Path, settings: Sequence[str] = ()) -> AsyncIterator[Served]:
    """Start the server with settings such as `dispatch_limits.lease_ms=1000`, and end it afterwards."""
    process = start("serve", "--dispatch", "--data", str(folder), *OPTIONS, *set_all(settings), runtime=folder)
    try:
        listeners = await read_listeners(process)
        server = find_server(process.pid, listeners["dispatch"], folder)
        server.client = listeners["client"]
        yield server
    finally:
        stop(process)


def start(*words: str, runtime: Path) -> subprocess.Popen[str]:
    """A command of godwit, which ends when this process does."""
    return subprocess.Popen(
        [sys.executable, "-m", "godwit", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        preexec_fn=follow_parent(),
    )


def set_all(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


async def read_listeners(process: subprocess.Popen[str]) -> dict[str, str]:
    """The addresses of a process, from the line that it prints once it listens."""
    assert process.stdout is not None
    line = await asyncio.to_thread(process.stdout.readline)
    return dict(word.split("=", 1) for word in line.split()[1:])


def find_server(pid: int, address: str, folder: Path) -> Served:
    """The server at an address, with the key in its folder."""
    host, _, port = address.rpartition(":")
    key = (folder / "dispatch" / "admin.key").read_text("ascii")
    return Served(pid, host, int(port), key, count(time.time_ns() // 1_000))  # no run repeats the keys of another


def stop(process: subprocess.Popen[str]) -> None:
    """Ends a process in order."""
    process.terminate()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def measure_file(folder: Path) -> int:
    """The store's file in bytes, without the write-ahead log, which is bounded by itself."""
    return (folder / "dispatch" / "dispatch.sqlite").stat().st_size


def list_quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median and p99 of durations, ms."""
    return {"p50_ms": statistics.median(seconds) * 1e3, "p99_ms": statistics.quantiles(seconds, n=100)[98] * 1e3}


def measure_fsync(folder: Path) -> float:
    """The median of a small write with fsync, ms."""
    took = []
    with (folder / "probe").open("wb", buffering=0) as file:
        for _ in range(100):
            file.write(b"x" * 4_096)
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1e3
