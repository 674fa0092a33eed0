"""The load `million`: as many connections as one process can hold, in growing steps, each with ten broadcasts to all
clients.

Owns the plan, the check of the machine (before anything is opened, with the values that would be enough), and the
metrics. A ring holds at most as many direct descriptors as a process may open files, which decides the numbers of shards
and generator threads.
"""

from __future__ import annotations

import resource
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from ..errors import GodwitError
from .shape import Figures, Shape, connect, pause, publish, steps_of

CONNECTIONS = 1_000_000
STEPS = (0.01, 0.1, 0.3, 1.0)
"""Shares of the full size at which broadcasts are sent."""
BROADCASTS = 10

THREADS_MAX = 64
RING_SPARE = 0.08
"""The usable share of a ring's descriptors: clients are spread over shards at random, and pending accepts use some."""
KB_PER_CONNECTION = 13.0
"""Bytes of both ends of a connection, in the kernel (two sockets of 5.6 kB) and in both processes; measured at 300,000."""
MACHINE_SPARE_KB = 1_000_000
PORTS_PER_ADDRESS = 8_000
"""Connections that the generator opens from one source address of 127.0.0.0/8."""

LIMITS = {
    "connections_max": 2_000_000,
    "ping_interval_ms": 3_600_000,
    "idle_ms_max": 7_200_000,
    "handshake_ms_max": 600_000,
    "message_ms_max": 600_000,
}
"""Settings of the node: no pings while idle connections are measured, long handshake timeouts, and room on each shard for
more than its average of the connections.
"""


class MachineTooSmall(GodwitError):
    """This machine cannot hold so many connections; the sentence names the limit."""


def plan_million(size: float) -> list[Shape]:
    """One run that grows to `size` of a million connections."""
    count = max(int(CONNECTIONS * size), THREADS_MAX)
    steps: list[dict[str, Any]] = []
    for upto in sorted({max(int(count * share), 1) for share in STEPS}):
        steps += [connect(f"connect {upto}", upto=upto), pause(3 * min(1.0, size * 10), f"idle {upto}")]
        steps += [publish(f"broadcast {place + 1} to {upto}", 1, in_flight=1) for place in range(BROADCASTS)]
    threads = choose_threads(count, read_descriptors())
    shape = Shape(count, 1, steps, publishers=1, is_acked=True, threads=threads, shards=threads, seconds_max=900.0)
    return [replace(shape, is_last=True)]


def read_descriptors() -> int:
    """How many files a process may open after it has raised its limit."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def choose_threads(count: int, descriptors: int) -> int:
    """The numbers of shards and generator threads for so many connections; raises MachineTooSmall."""
    a_ring = int(min(descriptors, 1 << 20) * (1 - RING_SPARE))
    threads = -(-count // max(1, a_ring))
    if threads > THREADS_MAX:
        raise MachineTooSmall(
            f"{count:,} connections do not fit: {THREADS_MAX} rings of {a_ring:,} direct descriptors hold "
            f"{THREADS_MAX * a_ring:,} (RLIMIT_NOFILE is {descriptors:,})"
        )
    return max(2, threads)


def check_machine(shape: Shape) -> None:
    """Check the machine before anything is opened; raises MachineTooSmall, which names what is too small."""
    count = shape.subscribers + shape.publishers
    needed_kb, available_kb = count * KB_PER_CONNECTION + MACHINE_SPARE_KB, psutil.virtual_memory().available / 1024
    if needed_kb > available_kb:
        fits = max(0.0, (available_kb - MACHINE_SPARE_KB) / KB_PER_CONNECTION / CONNECTIONS)
        raise MachineTooSmall(
            f"{count:,} connections, both ends, need about {needed_kb / 1e6:.1f} GB and {available_kb / 1e6:.1f} GB "
            f"are available; --size {fits:.2f} would fit"
        )
    files = _read_number("/proc/sys/fs/file-max")
    if files is not None and files < 2 * count + 10_000:
        raise MachineTooSmall(f"fs.file-max is {files:,}; {count:,} connections have two sockets each: raise it")
    tracked, most = (_read_number(f"/proc/sys/net/netfilter/nf_conntrack_{name}") for name in ("count", "max"))
    if tracked and most is not None and most < count:
        raise MachineTooSmall(f"this system tracks connections, at most nf_conntrack_max = {most:,}: raise it")
    low, high = _read_numbers("/proc/sys/net/ipv4/ip_local_port_range") or (0, 2 * PORTS_PER_ADDRESS)
    if high - low < PORTS_PER_ADDRESS:
        raise MachineTooSmall(f"ip_local_port_range holds {high - low:,} ports; {PORTS_PER_ADDRESS:,} are needed")


def read_million(results: list[dict[str, Any]], shapes: list[Shape]) -> Figures:
    """Metrics at the full size, and at each smaller step with its count in the name."""
    result = results[0]
    counts = [int(name.split()[-1]) for name in steps_of(result) if name.startswith("idle ")]
    figures = _figures_at(result, counts[-1])
    for count in counts[:-1]:
        figures |= {f"{name}_at_{count}": value for name, value in _figures_at(result, count).items()}
    return {"connections": float(counts[-1]), **figures}


def _figures_at(result: dict[str, Any], count: int) -> Figures:
    steps = steps_of(result)
    idle = steps[f"idle {count}"]
    broadcasts = [steps[f"broadcast {place + 1} to {count}"] for place in range(BROADCASTS)]
    before = result["machine_before"]
    sockets = 2 * (count + 1)
    latency = {
        f"{name}_ms": statistics.median(step["latency"][f"{name}_us"] for step in broadcasts) / 1e3
        for name in ("p10", "p50", "p90", "p99", "p999", "max")
    }
    delivered = sum(step["delivered"] for step in broadcasts)
    return {
        "user_kb_per_connection": (idle["pss_kb"] - result["pss_kb_before"]) / count,
        "kernel_kb_per_socket": (idle["kernel_kb"] - before["kernel_kb"]) / sockets,
        **latency,
        "cpu_us_per_delivery": sum(step["cpu_seconds"] for step in broadcasts) * 1e6 / max(1, delivered),
        "broadcast_seconds": statistics.median(step["seconds"] for step in broadcasts),
        "exact": float(delivered == BROADCASTS * count),
    }


def _read_numbers(path: str) -> list[int] | None:
    try:
        return [int(word) for word in Path(path).read_text().split()]
    except (OSError, ValueError):
        return None


def _read_number(path: str) -> int | None:
    found = _read_numbers(path)
    return found[0] if found else None
