"""The load `million`: as many connections as one process holds, grown in steps, each step with ten broadcasts to everybody.

Owns the plan of it, what it needs of the machine (said before anything is opened, with what would do), and the figures read
from its run. A ring holds no more direct descriptors than a process may open files, so it takes as many shards, and threads
of the generator, as that makes necessary.
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
"""Shares of the full size at which everybody is sent broadcasts."""
BROADCASTS = 10

THREADS_MAX = 64
RING_SPARE = 0.08
"""Of a ring's descriptors: clients fall on the shards by chance, and accepts that wait hold some."""
KB_PER_CONNECTION = 13.0
"""Both ends of it, in the kernel (two sockets at 5.6 kB) and in both processes; measured at 300,000."""
MACHINE_SPARE_KB = 1_000_000
PORTS_PER_ADDRESS = 8_000
"""What the generator opens from one source address of 127.0.0.0/8."""

LIMITS = {
    "connections_max": 2_000_000,
    "ping_interval_ms": 3_600_000,
    "idle_ms_max": 7_200_000,
    "handshake_ms_max": 600_000,
    "message_ms_max": 600_000,
}
"""Idle connections are left in peace while it is measured; a handshake may wait while others are made, and a
shard that chance gave more than its share of the connections takes them."""


class MachineTooSmall(GodwitError):
    """This machine does not hold so many connections; the sentence says what binds."""


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
    """How many files a process may open here once it has raised its limit as far as it goes."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def choose_threads(count: int, descriptors: int) -> int:
    """Shards, and threads of the generator, that hold so many connections; raises MachineTooSmall."""
    a_ring = int(min(descriptors, 1 << 20) * (1 - RING_SPARE))
    threads = -(-count // max(1, a_ring))
    if threads > THREADS_MAX:
        raise MachineTooSmall(
            f"{count:,} connections do not fit: {THREADS_MAX} rings of {a_ring:,} direct descriptors hold "
            f"{THREADS_MAX * a_ring:,} (RLIMIT_NOFILE is {descriptors:,})"
        )
    return max(2, threads)


def check_machine(shape: Shape) -> None:
    """Says what is too little here for this run before anything is opened; raises MachineTooSmall."""
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
    """Figures at the full size, and at each smaller step with its count in the name."""
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
