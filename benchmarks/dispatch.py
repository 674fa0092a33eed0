"""Measures dispatch: accepting over HTTP, one send to very many inboxes, accepting during it, and imports.

    python -m benchmarks.dispatch [--receivers 100000] [--seconds 10]

Starts a node with dispatch in a temporary data directory and writes benchmarks/results/dispatch/loads.json. The generator runs on the same
machine. CPU times are the whole server process's: node, dispatch and store. Receivers have a zone, and half of them quiet hours.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

RESULT = Path(__file__).parent / "results" / "dispatch" / "loads.json"
IN_FLIGHT = 32
TICKS = os.sysconf("SC_CLK_TCK")
OPTIONS = (
    *("--client", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--shards", "1"),
    *("--set", "dispatch.address=127.0.0.1:0"),
)


@dataclass
class Served:
    """A server process, and how to call it."""

    pid: int
    host: str
    port: int
    key: str
    numbers: Iterator[int]

    def call(self, method: str, path: str, body: bytes | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self.key}"}
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


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Served]:
    """Starts the server; ends it at the end."""
    process = subprocess.Popen(  # noqa: ASYNC220  # nothing else runs yet
        [sys.executable, "-m", "godwit", "serve", "--dispatch", "--data", str(folder), *OPTIONS],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
    )
    assert process.stdout is not None
    try:
        line = await asyncio.to_thread(process.stdout.readline)
        host, _, port = dict(word.split("=", 1) for word in line.split()[1:])["dispatch"].rpartition(":")
        key = (folder / "dispatch" / "admin.key").read_text("ascii")
        yield Served(process.pid, host, int(port), key, count())
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


async def accept(server: Served, receivers: int, until: asyncio.Event) -> dict[str, float]:
    """Sends notifications to one receiver each until the event is set; rate and latency."""
    latencies: list[float] = []

    async def work() -> None:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        while not until.is_set():
            number = next(server.numbers)
            to = {"receiver": f"user:{number % receivers}"}
            body = json.dumps({"to": to, "content": {"title": "Hello", "body": "It works."}}).encode()
            head = (
                f"POST /v1/notifications HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
                f"Idempotency-Key: {number}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            begin = time.perf_counter()
            writer.write(head.encode() + body)
            answered = await reader.readuntil(b"\r\n\r\n")
            assert answered.startswith(b"HTTP/1.1 202"), answered
            size = int(answered.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
            latencies.append(time.perf_counter() - begin)
        writer.close()

    began, cpu_s = time.perf_counter(), server.cpu_s()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    took_s, used_s = time.perf_counter() - began, server.cpu_s() - cpu_s
    return {
        "accepts_per_s": len(latencies) / took_s,
        "p50_ms": statistics.median(latencies) * 1e3,
        "p99_ms": statistics.quantiles(latencies, n=100)[98] * 1e3,
        "cpu_us_per_accept": used_s / len(latencies) * 1e6,
    }


async def accept_and_settle(server: Served, receivers: int, seconds: float) -> dict[str, float]:
    """Accepts for some seconds, then waits until no job is open: what accepting leaves to do counts, too."""
    commits, cpu_s, first = server.read_metric("commits_total"), server.cpu_s(), next(server.numbers)
    until = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, until.set)
    load = await accept(server, receivers, until)
    accepted, began = next(server.numbers) - first - 1, time.perf_counter()
    left = await asyncio.to_thread(server.read_metric, "jobs_open")
    while await asyncio.to_thread(server.read_metric, "jobs_open"):  # noqa: ASYNC110  # the server announces nothing
        await asyncio.sleep(0.05)
    return {
        **load,
        "jobs_open_at_end": left,
        "settled_after_s": time.perf_counter() - began,
        "commits_per_accept": (server.read_metric("commits_total") - commits) / accepted,
        "cpu_us_per_accept_settled": (server.cpu_s() - cpu_s) / accepted * 1e6,
    }


def import_receivers(server: Served, receivers: int) -> dict[str, float]:
    """Receivers, and a group of all of them."""
    quiet = {"quiet": {"start": "22:00", "end": "07:00"}}
    rows = ({"id": f"user:{n}", "zone": "Europe/Berlin", **(quiet if n % 2 else {})} for n in range(receivers))
    body = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    began, cpu_s = time.perf_counter(), server.cpu_s()
    told = server.call("POST", "/v1/receivers/import", body)
    assert told["rejected_count"] == 0
    took_s, used_s = time.perf_counter() - began, server.cpu_s() - cpu_s
    server.call("PUT", "/v1/groups/all", b"{}")
    members = b"".join(b'{"receiver":"user:%d"}\n' % number for number in range(receivers))
    server.call("POST", "/v1/groups/all/import?version=1", members)
    server.call("PUT", "/v1/groups/all/version", b'{"version":1}')
    return {"receivers_per_s": receivers / took_s, "cpu_us_per_receiver": used_s / receivers * 1e6}


async def send_to_all(server: Served, name: str, receivers: int) -> dict[str, float]:
    """One notification to the group; receivers a second, and what memory grew."""
    body = json.dumps({"to": {"group": "all"}, "content": {"title": "news"}}).encode()
    began, cpu_s, rss_mb = time.perf_counter(), server.cpu_s(), server.rss_mb()
    peak_mb = rss_mb
    await asyncio.to_thread(server.call, "PUT", f"/v1/notifications/{name}", body)
    while (told := await asyncio.to_thread(server.call, "GET", f"/v1/notifications/{name}"))["state"] != "settled":
        peak_mb = max(peak_mb, server.rss_mb())
        await asyncio.sleep(0.05)
    assert told["counts"] == {"inbox": {"sent": receivers}}, told
    took_s, used_s = time.perf_counter() - began, server.cpu_s() - cpu_s
    return {
        "receivers_per_s": receivers / took_s,
        "receivers_per_cpu_s": receivers / used_s,
        "rss_growth_mb": peak_mb - rss_mb,
    }


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


async def run(receivers: int, seconds: float) -> dict[str, Any]:
    """All loads, one after the other."""
    loads: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with served(folder) as server:
            loads["import"] = await asyncio.to_thread(import_receivers, server, receivers)
            loads["accept, 32 in flight"] = await accept_and_settle(server, receivers, seconds)
            loads["one send to all inboxes"] = await send_to_all(server, "all-1", receivers)
            until = asyncio.Event()
            accepting = asyncio.create_task(accept(server, receivers, until))
            sent = await send_to_all(server, "all-2", receivers)
            until.set()
            loads["accept during a send to all inboxes"] = {**await accepting, "send": sent}
        fsync_ms = measure_fsync(folder)
    rounded = json.loads(json.dumps(loads), parse_float=lambda text: float(f"{float(text):.4g}"))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}"
    return {"machine": machine, "receivers": receivers, "fsync_ms": round(fsync_ms, 2), "loads": rounded}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--receivers", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    result = asyncio.run(run(given.receivers, given.seconds))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
