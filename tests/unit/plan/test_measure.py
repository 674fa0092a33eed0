"""godwit.plan.measure: each cost is read from the step that shows it, and a made-up machine is found again."""

from __future__ import annotations

from typing import Any

import pytest

from godwit.plan.machine import FRAME_OVERHEAD_BYTES
from godwit.plan.measure import (
    HELD,
    MISSED,
    OFTEN,
    SELDOM,
    SIZES,
    SUBJECTS,
    _crowd,
    _fan,
    _paced,
    _publishing,
    read_costs,
)

PUBLISH, SEND, TURN, CONNECT, CATCH_UP = 0.7, 5.0, 80.0, 30.0, 0.2


def step(name: str, cpu_us: float, seconds: float = 1.0, **counts: float) -> dict[str, Any]:
    none = {"delivered": 0, "reads": 0, "published": 0, "acked": 0, "pss_kb": 44_000, "kernel_kb": 194_000}
    return {"name": name, "cpu_seconds": cpu_us / 1e6, "seconds": seconds, **none, **counts}


def waking(name: str, rate: int) -> dict[str, Any]:
    """A second of single messages: of a busy core the turns are those that find it at rest."""
    work, turns = rate * (PUBLISH + SEND) / 1e6, rate * TURN / 1e6
    busy = (work + turns) / (1 + turns)
    return step(name, busy * 1e6, published=rate, delivered=rate, reads=rate)


def test_a_made_up_machine_is_found_again() -> None:
    crowd = {
        "pss_kb_before": 40_000,
        "machine_before": {"kernel_kb": 100_000},
        "steps": [
            waking("seldom", SELDOM),
            waking("often", OFTEN),
            step("all", (HELD - SUBJECTS) * CONNECT),
            step("idle", 0.0),
            step("many", 300 * TURN + 30_000 * (SEND + 2.0), published=300, delivered=30_000),
        ],
    }
    fan = {
        "fan 1": step("fan 1", 14_000 * SEND * 3, delivered=14_000, reads=14_000),
        "fan 2": step("fan 2", 14_000 * SEND, delivered=14_000, reads=14_000),
        "merged": step("merged", 5_000_000 * 0.4, delivered=5_000_000, reads=100_000),
        "return": step("return", 1_000 * (CONNECT + MISSED * CATCH_UP)),
    }
    sizes = {
        size: {"fan 1": step("fan 1", 1_000 * (SEND + size / 4_096), delivered=1_000, reads=1_000)} for size in SIZES
    }
    publishing = {size: step("publish", 1_000 * (PUBLISH + 0.001 * (size - 144)), acked=1_000) for size in (144, 4_096)}
    found = read_costs(crowd, fan, sizes, publishing)
    expected = {
        f"send {144 + FRAME_OVERHEAD_BYTES}": SEND,
        f"send {8_192 + FRAME_OVERHEAD_BYTES}": SEND + 2.0,
        f"turn {SELDOM}": TURN,
        f"turn {OFTEN}": TURN,
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
    assert 0.1 < found["frame_us"] < 0.4
    assert found["full_share"] == 1.0


@pytest.mark.parametrize(
    "shape", [_crowd(), _fan(), _paced(1_024), _publishing(144)], ids=lambda shape: shape.steps[-1]["name"]
)
def test_every_load_has_steps_with_names_of_their_own(shape: Any) -> None:
    names = [found["name"] for found in shape.steps]
    assert len(set(names)) == len(names)
    assert shape.plan()["content_bytes"] >= 144
