"""godwit.plan.machine: saved values are read unchanged, foreign files are refused, and costs are between measured ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from godwit.plan.machine import FRAME_OVERHEAD_BYTES, MachineInvalid, read_machine

from .figures import MACHINE, machine


def test_figures_survive_being_kept() -> None:
    assert read_machine(json.loads(json.dumps(MACHINE.describe()))) == MACHINE


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"cores": "many"}, "cores must be a number"),
        ({"send_us": {"234": 1.0}}, "send_us must be an object"),
        ({"turn_us": {"often": 1.0, "seldom": 2.0}}, "turn_us must be an object"),
        ({"driver": 7}, "driver must be text"),
        ({"connect_us": -1.0}, "connect_us must be a number of 0 or more"),
        ({"connect_us": float("nan")}, "connect_us must be"),
        ({"teapot": 1}, "do not fit this version"),
    ],
)
def test_foreign_figures_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(MachineInvalid, match=said):
        read_machine({**MACHINE.describe(), **changed})
    with pytest.raises(MachineInvalid, match="not a JSON object"):
        read_machine([])


def test_a_send_costs_what_was_measured_and_between_what_lies_between() -> None:
    def cost(size: int, frames: float = 1.0) -> float:
        return MACHINE.send_cost_us(1_000, size - FRAME_OVERHEAD_BYTES, frames) - frames * MACHINE.frame_us

    assert (cost(234), cost(1_114), cost(8_282)) == pytest.approx((5.0, 6.0, 8.0))
    assert cost(674) == pytest.approx(5.5)
    assert cost(100) == pytest.approx(5.0)
    assert cost(15_450) == pytest.approx(10.0)
    assert cost(234, frames=1_114 / 234) == pytest.approx(6.0)


def test_a_send_is_dearer_where_more_connections_are_held() -> None:
    few, some, many = (MACHINE.send_cost_us(count, 144) for count in (1_000, 10_000, 1_000_000))
    assert some - few == pytest.approx(5.0 * 0.3)
    assert some < many < some + 2.0
    assert MACHINE.send_cost_us(10, 144) == few


def test_a_turn_is_dearer_after_a_long_rest() -> None:
    assert [MACHINE.turn_cost_us(rate) for rate in (0.1, 400, 8_000, 1e6)] == [100.0, 100.0, 40.0, 40.0]
    assert 40 < MACHINE.turn_cost_us(2_000) < 100
    assert machine(turn_us={"1": 7.0}).turn_cost_us(100) == 7.0
    bent = machine(turn_us={"50": 150.0, "400": 100.0, "8000": 40.0})
    assert [bent.turn_cost_us(rate) for rate in (50, 400, 8_000)] == pytest.approx([150.0, 100.0, 40.0])


def test_a_node_that_never_rests_may_pay_less_for_many_connections() -> None:
    busy = machine(full_share=0.8, full_frames=1.0, full_growth=0.1)
    resting, full = (busy.send_cost_us(10_000, 144, is_full=is_full) for is_full in (False, True))
    assert resting - busy.send_cost_us(1_000, 144) == pytest.approx(5.0 * 0.3)
    assert full - busy.send_cost_us(1_000, 144, is_full=True) == pytest.approx(5.0 * 0.1)
    assert (
        full > busy.send_cost_us(5_500, 144, is_full=True) == pytest.approx(busy.send_cost_us(1_000, 144) + 5.0 * 0.05)
    )
    assert MACHINE.send_cost_us(10_000, 144, is_full=True) == MACHINE.send_cost_us(10_000, 144)


def test_what_a_node_saves_that_never_rests_grows_with_the_frames_of_a_send() -> None:
    busy = machine(full_share=0.8, full_frames=31.0)
    shares = [busy.full_cost_share(frames) for frames in (1.0, 16.0, 31.0, 60.0)]
    assert shares == pytest.approx([1.0, 0.9, 0.8, 0.8])
