"""godwit.bench.million: it grows in steps, takes the shards that rings of a limited size make necessary, and says what binds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from godwit.bench.million import (
    BROADCASTS,
    THREADS_MAX,
    MachineTooSmall,
    check_machine,
    choose_threads,
    plan_million,
    read_million,
)
from godwit.bench.shape import Shape


def test_it_grows_to_a_million_and_everybody_is_sent_ten_broadcasts_at_each_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("godwit.bench.million.read_descriptors", lambda: 20_000)
    shape = plan_million(1.0)[0]
    assert [step["upto"] for step in shape.steps if step["do"] == "connect"] == [10_000, 100_000, 300_000, 1_000_000]
    assert sum(step["do"] == "publish" for step in shape.steps) == 4 * BROADCASTS
    assert shape.shards == shape.threads == 55
    assert shape.shards * 20_000 > 1_000_000


@pytest.mark.parametrize(
    ("count", "descriptors", "threads"), [(10, 20_000, 2), (18_400, 20_000, 2), (36_801, 20_000, 3)]
)
def test_a_ring_keeps_some_room_for_chance(count: int, descriptors: int, threads: int) -> None:
    assert choose_threads(count, descriptors) == threads


def test_too_few_descriptors_are_said_with_what_they_would_hold() -> None:
    with pytest.raises(MachineTooSmall, match=r"1,000,000 connections do not fit: 64 rings of 942 .* hold 60,288"):
        choose_threads(1_000_000, 1_024)
    assert choose_threads(1_000_000, 1 << 30) <= THREADS_MAX


def test_too_little_memory_is_said_with_the_size_that_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Shape(1_000_000, 1, [], publishers=1)
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=7_500_000 * 1024))
    with pytest.raises(MachineTooSmall, match=r"need about 14\.0 GB and 7\.5 GB are available; --size 0\.50 would fit"):
        check_machine(shape)


@pytest.mark.parametrize(
    ("path", "values", "said"),
    [
        ("file-max", [100_000], "two sockets each"),
        ("ip_local_port_range", [60_000, 61_000], "1,000 ports"),
        ("nf_conntrack", [65_536], "nf_conntrack_max = 65,536"),
    ],
)
def test_each_other_limit_is_named(monkeypatch: pytest.MonkeyPatch, path: str, values: list[int], said: str) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1 << 40))
    monkeypatch.setattr("godwit.bench.million._read_numbers", lambda file: values if path in file else None)
    with pytest.raises(MachineTooSmall, match=said):
        check_machine(Shape(1_000_000, 1, []))


def test_memory_is_split_between_the_process_and_the_kernel_and_latency_is_the_median_broadcast() -> None:
    def step(name: str, **values: Any) -> dict[str, Any]:
        return {"name": name, "pss_kb": 1_300, "kernel_kb": 12_010, "cpu_seconds": 0.001, "seconds": 0.5, **values}

    def latency(us: float) -> dict[str, float]:
        return {f"{name}_us": us for name in ("p10", "p50", "p90", "p99", "p999", "max")}

    broadcasts = [
        step(f"broadcast {n + 1} to 1000", delivered=1_000, latency=latency(1_000.0 * n)) for n in range(BROADCASTS)
    ]
    machine = {"kernel_kb": 2_000}
    result = {"pss_kb_before": 1_000, "machine_before": machine, "steps": [step("idle 1000"), *broadcasts]}
    figures = read_million([result], [])
    assert figures["user_kb_per_connection"] == pytest.approx(0.3)
    assert figures["kernel_kb_per_socket"] == pytest.approx(5.0)
    assert (figures["p50_ms"], figures["exact"]) == (4.5, 1.0)
    assert figures["cpu_us_per_delivery"] == pytest.approx(1.0)
