"""godwit.plan.check: a workload becomes a load if this machine can run it, and the run is compared with the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from godwit.plan.check import NEAR, SLICES, Compared, WorkloadTooLarge, compare, plan_check
from godwit.plan.model import messages_a_core, predict
from godwit.plan.workload import Budget, Workload

from .figures import MACHINE

WORKLOAD = Workload(connections=5_000, subjects=50, messages_per_second=200.0)


def test_the_workload_is_played_as_it_was_described() -> None:
    shape = plan_check(WORKLOAD, MACHINE)
    assert (shape.subscribers, shape.subjects, shape.content_bytes) == (5_000, 50, 144)
    steady = [step for step in shape.steps if step["name"].startswith("steady ")]
    assert len(steady) == SLICES
    assert {step["rate"] for step in steady} == {200.0}
    assert not [
        step for step in plan_check(replace(WORKLOAD, messages_per_second=0.0), MACHINE).steps if "rate" in step
    ]


@pytest.mark.parametrize(("size", "ahead"), [(144, 34), (2_000, 4), (60_000, 4)])
def test_no_more_is_on_its_way_than_one_read_tells_of(size: int, ahead: int) -> None:
    *_, full = plan_check(replace(WORKLOAD, message_bytes=size, messages_per_second=1.0), MACHINE).steps
    assert full["name"] == "full" and full["ahead_max"] == ahead


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"connections": 50_000}, "one shard holds 18,400"),
        ({"messages_per_second": 1e6}, "one core carries about"),
        ({"fan_out": 500.0}, "one subscription a connection"),
        ({"conflate_ms": 100}, "cannot be tried here"),
    ],
)
def test_what_cannot_be_played_is_said(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(WorkloadTooLarge, match=said):
        plan_check(replace(WORKLOAD, **changed), MACHINE)


def play_as_predicted(kernel_kb_before: int) -> list[Compared]:
    """A run that went as the model says, on a machine whose kernel had taken so much before."""
    cores = predict(WORKLOAD, Budget(cores=1), MACHINE).cores
    slices = [cores * 3, cores, cores * 2, cores * 2]
    full = messages_a_core(WORKLOAD, MACHINE, 20.0)
    memory = {"pss_kb": 42_000, "kernel_kb": 147_000}
    steps = [
        {"name": "connect", "cpu_seconds": 0.175, **memory},
        {"name": "idle", **memory},
        *(
            {"name": f"steady {n}", "cpu_seconds": busy, "seconds": 1.0, "delivered": 100, "reads": 100}
            | {"published": 200, "writes": 200}
            for n, busy in enumerate(slices)
        ),
        {"name": "full", "published": full, "cpu_seconds": 1.0, "seconds": 1.1, "delivered": 2_000, "reads": 100},
    ]
    return compare(WORKLOAD, MACHINE, {"steps": steps, "machine_before": {"kernel_kb": kernel_kb_before}})


def test_a_run_that_went_as_the_model_says_is_near_everywhere() -> None:
    found = play_as_predicted(kernel_kb_before=100_000)
    assert len(found) == 5
    assert all(one.is_near for one in found), found
    assert {one.name: one.ratio for one in found}["the workload"] == pytest.approx(1.0)


def test_a_kernel_that_gave_back_more_than_the_run_took_is_held_against_nothing() -> None:
    found = play_as_predicted(kernel_kb_before=150_000)
    assert len(found) == 4
    assert all(one.is_near for one in found), found


@pytest.mark.parametrize(("predicted", "is_near"), [(1 + NEAR, True), (1.26, False), (0.74, False), (0.76, True)])
def test_near_is_within_a_quarter(predicted: float, is_near: bool) -> None:
    assert Compared("x", "s", predicted, 1.0).is_near is is_near
    assert not Compared("x", "s", predicted, 0.0).is_near
