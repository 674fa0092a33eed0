"""The demo: live telemetry of this host on /host/NAME/….

Owns the measured values and their subjects; each round is published in one batch. psutil runs on a thread, so that a slow
sensor blocks nothing. Invariant: a value that this host does not have is left out.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import psutil

from .engine import Draft
from .logs import read_logger

SEGMENT_CHARACTERS_MAX = 64
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")

CPU_S_MIN = 0.1
"""A shorter interval has too few kernel ticks: if a late round and the next one were close, the result would be 0 %."""


class Demo:
    """Publishes every `interval_ms` from start to stop."""

    def __init__(self, publish_many: Callable[[Sequence[Draft]], object], interval_ms: int) -> None:
        self._publish_many = publish_many
        self._interval_s = interval_ms / 1000
        self._telemetry = Telemetry()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start; the first round is at once."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop between two rounds."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            try:
                self._publish_many(await asyncio.to_thread(self._telemetry.measure))
            except Exception as error:  # a host's odd sensor must not end the demonstration
                read_logger().warning("demo_failed", reason=f"{type(error).__name__}: {error}")
            due = max(due + self._interval_s, loop.time())  # rounds that were missed are not made up for
            await asyncio.sleep(due - loop.time())


class Telemetry:
    """Converts this host's counters to messages; rates cover the time since the round before."""

    def __init__(self, host: str | None = None) -> None:
        self._root = "/host/" + make_segment(host or socket.gethostname() or "localhost")
        self._before: dict[str, float] = {}
        self._measured_s = time.monotonic()
        # psutil's own percentages count from the last call of the same thread, and say 0 to a thread that is new.
        self._spent = [_spend(core) for core in psutil.cpu_times(percpu=True)]
        self._cores: list[float] = []
        self._cores_s = self._measured_s

    def measure(self) -> list[Draft]:
        """The messages of one round."""
        now_s = time.monotonic()
        elapsed_s, self._measured_s = max(now_s - self._measured_s, 0.001), now_s
        parts = (
            self._read_cpu(),
            _read_memory(),
            _read_load(),
            _read_temperatures(),
            self._read_disk(elapsed_s),
            self._read_network(elapsed_s),
        )
        return [
            Draft(f"{self._root}/{name}", json.dumps(fields, separators=(",", ":")).encode())
            for part in parts
            for name, fields in part
        ]

    def _read_cpu(self) -> Iterator[tuple[str, dict[str, Any]]]:
        if time.monotonic() - self._cores_s >= CPU_S_MIN:
            before, self._spent = self._spent, [_spend(core) for core in psutil.cpu_times(percpu=True)]
            self._cores_s = time.monotonic()  # not the round's: the thread may have waited for a core since
            self._cores = [_percent(*each) for each in zip(before, self._spent, strict=False)]  # cores come and go
        if not (cores := self._cores):
            return  # no interval long enough has been measured yet
        yield "cpu", {"percent": round(sum(cores) / max(len(cores), 1), 1), "cores": len(cores)}
        for number, percent in enumerate(cores):
            yield f"cpu/{number}", {"percent": percent}

    def _read_disk(self, elapsed_s: float) -> Iterator[tuple[str, dict[str, Any]]]:
        usage = psutil.disk_usage("/")
        yield "disk", {"used_bytes": usage.used, "total_bytes": usage.total, "percent": usage.percent}
        counters = psutil.disk_io_counters()
        if counters is not None:
            yield (
                "disk/rates",
                {
                    "read_bytes_per_s": self._rate("disk.read", counters.read_bytes, elapsed_s),
                    "written_bytes_per_s": self._rate("disk.written", counters.write_bytes, elapsed_s),
                },
            )

    def _read_network(self, elapsed_s: float) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, counters in psutil.net_io_counters(pernic=True).items():
            yield (
                f"network/{make_segment(name)}",
                {
                    "received_bytes_per_s": self._rate(f"{name}.received", counters.bytes_recv, elapsed_s),
                    "sent_bytes_per_s": self._rate(f"{name}.sent", counters.bytes_sent, elapsed_s),
                    "received_bytes": counters.bytes_recv,
                    "sent_bytes": counters.bytes_sent,
                },
            )

    def _rate(self, name: str, total: float, elapsed_s: float) -> int:
        before = self._before.get(name, total)
        self._before[name] = total
        return round(max(total - before, 0) / elapsed_s)


def _spend(core: Any) -> tuple[float, float]:
    """The busy seconds and all seconds of a core; `user` already includes the time of guests."""
    spent = core._asdict()
    total = sum(spent.values()) - spent.get("guest", 0) - spent.get("guest_nice", 0)
    return total - spent["idle"] - spent.get("iowait", 0), total


def _percent(before: tuple[float, float], after: tuple[float, float]) -> float:
    """The share of busy time, in percent. The counter of waiting for disks is sometimes corrected and can decrease."""
    busy, total = after[0] - before[0], after[1] - before[1]
    return round(100 * min(max(busy / total, 0), 1), 1) if total > 0 else 0.0


def make_segment(text: str) -> str:
    """A text as one segment of a subject: only letters, digits, dots, dashes and underscores are kept."""
    return _UNFIT.sub("-", text)[:SEGMENT_CHARACTERS_MAX].strip("-") or "unnamed"


def _read_memory() -> Iterator[tuple[str, dict[str, Any]]]:
    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    yield (
        "memory",
        {
            "used_bytes": memory.total - memory.available,
            "total_bytes": memory.total,
            "percent": memory.percent,
            "swap_used_bytes": swap.used,
        },
    )


def _read_load() -> Iterator[tuple[str, dict[str, Any]]]:
    one, five, fifteen = psutil.getloadavg()
    yield "load", {"minutes_1": round(one, 2), "minutes_5": round(five, 2), "minutes_15": round(fifteen, 2)}


def _read_temperatures() -> Iterator[tuple[str, dict[str, Any]]]:
    read = getattr(psutil, "sensors_temperatures", None)  # not on every system
    for chip, sensors in (read() if read else {}).items():
        for number, sensor in enumerate(sensors):
            yield (
                f"temperature/{make_segment(chip)}/{make_segment(sensor.label or str(number))}",
                {"celsius": sensor.current},
            )
