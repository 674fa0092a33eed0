"""godwit.plan.measure: each cost is read from the step that shows it, and a made-up machine is found again."""

from __future__ import annotations

from typing import Any

import pytest

from godwit.bench.shape import steps_of
from godwit.bench.targets import BenchFailed
from godwit.plan.machine import FRAME_OVERHEAD_BYTES, MANY
from godwit.plan.measure import (
    HELD,
    LARGE,
    MISSED,
    PUBLISHED,
    RATES,
    SUBJECTS,
    TLS_MANY,
    _encrypted,
    _fan,
    _least,
    _many,
    _paced,
    _publishing,
    find_full_growth,
    find_tls_full,
    pick_least,
    read_costs,
    read_tls,
)

from .figures import MACHINE, machine

PUBLISH, SEND, TURN, CONNECT, CATCH_UP = 0.7, 5.0, 80.0, 30.0, 0.2
FRAME, A_BYTE = 0.2, 0.0002


def by_bytes(size: int, frames: int = 1) -> float:
    """A send of so many frames, by the bytes beyond those of the smallest."""
    return SEND + A_BYTE * (frames * (size + FRAME_OVERHEAD_BYTES) - 144 - FRAME_OVERHEAD_BYTES)


def step(name: str, cpu_us: float, seconds: float = 1.0, **counts: float) -> dict[str, Any]:
    none = {"delivered": 0, "reads": 0, "published": 0, "acked": 0, "writes": 0, "rests": 0}
    none |= {"pss_kb": 44_000, "kernel_kb": 194_000}
    return {"name": name, "cpu_seconds": cpu_us / 1e6, "seconds": seconds, **none, **counts}


def waking(name: str, rate: int) -> dict[str, Any]:
    """A second of single messages, of which four in five find the node at rest."""
    rests = rate * 4 // 5
    cpu_us = rate * (PUBLISH + SEND) + rests * TURN
    return step(name, cpu_us, published=rate, writes=rate, delivered=rate, reads=rate, rests=rests)


def fanned(name: str, messages: int, send_us: float) -> dict[str, Any]:
    """Messages that leave alone, each to many connections."""
    sent = messages * MANY
    return step(name, messages * (PUBLISH + TURN) + sent * send_us, delivered=sent, reads=sent)


def test_a_made_up_machine_is_found_again() -> None:
    many = {
        "pss_kb_before": 40_000,
        "machine_before": {"kernel_kb": 100_000},
        "steps": [
            step("resting", 0.0),
            *(waking(name, rate) for name, rate in RATES.items()),
            step("all", (HELD - SUBJECTS) * CONNECT),
            step("idle", 0.0),
            fanned("broad 1", 10, SEND + 2.0),
        ],
    }
    fan = {
        "fan 1": fanned("fan 1", 14, SEND * 3),
        "fan 2": fanned("fan 2", 14, SEND),
        "merged": step("merged", 100_000 * (by_bytes(144, 50) + 50 * FRAME), delivered=5_000_000, reads=100_000),
        "return": step("return", 1_000 * (CONNECT + MISSED * CATCH_UP)),
    }
    large = {"fan 1": fanned("fan 1", 10, by_bytes(LARGE))}
    publishing = {size: step("publish", 1_000 * (PUBLISH + 0.001 * (size - 144)), acked=1_000) for size in PUBLISHED}
    found = read_costs(many, fan, large, publishing)
    expected = {
        f"send {144 + FRAME_OVERHEAD_BYTES}": SEND,
        f"send {LARGE + FRAME_OVERHEAD_BYTES}": by_bytes(LARGE),
        "turn seldom": TURN,
        "turn often": TURN,
        "wakes rare": RATES["rare"] * 0.8,
        "wakes often": RATES["often"] * 0.8,
        "send_growth": 0.4,
        "publish_us": PUBLISH - 0.144,
        "publish_byte_us": 0.001,
        "connect_us": CONNECT,
        "catch_up_us": CATCH_UP,
        "user_kb": 0.4,
        "kernel_kb": 4.7,
        "base_mb": 40.0,
        "rest_cores": 0.0,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=0.02)
    assert (found["frame_us"], found["full_share"]) == (pytest.approx(FRAME, rel=0.02), 1.0)


def test_of_all_rounds_each_step_counts_at_its_cheapest_and_where_messages_left_alone() -> None:
    def run(pss_kb: int, fan_us: float, reads: int, merged_us: float) -> dict[str, Any]:
        fan = step("fan 1", fan_us, delivered=100, reads=reads)
        return {
            "pss_kb_before": pss_kb,
            "steps": [fan, step("merged", merged_us, delivered=100, reads=2, pss_kb=pss_kb)],
        }

    least = pick_least([run(1, 700.0, 100, 60.0), run(2, 200.0, 50, 80.0), run(3, 600.0, 100, 70.0)])
    assert [found["cpu_seconds"] for found in least["steps"]] == pytest.approx([600e-6, 60e-6])
    assert least["pss_kb_before"] == least["steps"][1]["pss_kb"] == 3


def test_on_a_busy_machine_sends_are_counted_and_where_none_is_told_it_says_so() -> None:
    def part(reads: int) -> dict[str, Any]:
        return step("fan", reads * SEND, delivered=1_000, reads=reads)

    assert _least({"fan 1": part(800), "fan 2": part(500)}) == pytest.approx(SEND)
    assert _least({"fan 1": part(700), "fan 2": part(1_000) | {"cpu_seconds": 0.006}}) == pytest.approx(6.0)
    with pytest.raises(BenchFailed, match="too busy"):
        _least({"fan 1": part(500)})


def test_what_tls_adds_is_the_difference_to_the_same_without() -> None:
    def run(size: int, each_us: float, connect_us: float, kb: float, receivers: int = MANY) -> dict[str, Any]:
        steps = [
            {**step("connect", receivers * connect_us), "pss_kb": 40_000 + kb * receivers},
            step("fan 1", 1_000 * each_us, delivered=1_000, reads=1_000),
        ]
        return {"steps": steps, "pss_kb_before": 40_000}

    def add(bytes_sent: int) -> float:
        return 0.3 + 0.0005 * bytes_sent

    small, large = 144 + FRAME_OVERHEAD_BYTES, LARGE + FRAME_OVERHEAD_BYTES
    plain, dear = run(144, SEND, CONNECT, 0.6), run(LARGE, SEND + 2.0, CONNECT, 0.6)
    tls = {
        144: run(144, SEND + add(small), CONNECT + 80.0, 3.6, TLS_MANY),
        LARGE: run(LARGE, SEND + 2.0 + add(large), CONNECT + 80.0, 3.6, TLS_MANY),
    }
    found = read_tls(plain, steps_of(plain), steps_of(dear), tls)
    expected = {"tls_connect_us": 80.0, "tls_send_us": 0.3, "tls_byte_us": 0.0005, "tls_kb": 3.0}
    assert found == pytest.approx(expected)


def test_what_many_cost_a_full_core_is_what_its_sends_cost_beyond_those_to_fewer() -> None:
    least = min(MACHINE.send_us.values())
    packed = step(
        "packed", 1_000 * (MACHINE.send_cost_us(MANY, 144, 16, is_full=True) + 2.0), delivered=16_000, reads=1_000
    )
    growth = find_full_growth(packed, MACHINE)
    assert growth == pytest.approx(2.0 / least)
    assert machine(full_growth=growth).send_cost_us(HELD, 144, 16, is_full=True) == pytest.approx(
        MACHINE.send_cost_us(MANY, 144, 16, is_full=True) + 2.0
    )


def test_what_tls_costs_a_full_core_is_what_its_sends_cost_beyond_the_same_in_the_clear() -> None:
    plain = MACHINE.send_cost_us(TLS_MANY, 144, 16, is_full=True)
    packed = step("packed", 1_000 * (plain + 3.0), delivered=16_000, reads=1_000)
    a_byte = find_tls_full(packed, MACHINE)
    assert a_byte == pytest.approx(3.0 / 16 / (144 + FRAME_OVERHEAD_BYTES))
    encrypted = machine(tls_full_byte_us=a_byte, tls_send_us=1.0, tls_byte_us=0.0)
    assert [encrypted.tls_cost_us(144, 16, is_full=full) for full in (True, False)] == pytest.approx([3.0, 1.0])


@pytest.mark.parametrize(
    "shape",
    [_many(), _fan(), _paced(1_024), _encrypted(144), _publishing(144)],
    ids=lambda shape: shape.steps[-1]["name"],
)
def test_every_load_has_steps_with_names_of_their_own(shape: Any) -> None:
    names = [found["name"] for found in shape.steps]
    assert len(set(names)) == len(names)
    assert shape.plan()["content_bytes"] >= 144
