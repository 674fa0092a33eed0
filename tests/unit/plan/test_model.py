"""godwit.plan.model: more work never takes less, more machine never carries less, and each limit binds when it is short."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from godwit.plan.model import (
    Node,
    cores_at_delay,
    cores_at_ease,
    count_shards,
    deliveries,
    fill_budget,
    find_round,
    most_connections,
    most_messages,
    predict,
    send_us,
)
from godwit.plan.workload import Budget, Workload

from .figures import MACHINE, machine

WORKLOADS = st.builds(
    Workload,
    connections=st.integers(1, 5_000_000),
    subjects=st.integers(1, 1_000_000),
    messages_per_second=st.floats(0, 1e6),
    message_bytes=st.integers(1, 1_000_000),
    conflate_ms=st.one_of(st.just(0), st.integers(10, 60_000)),
    delay_ms_max=st.floats(1, 60_000),
    away_seconds=st.floats(0, 600),
).filter(lambda workload: workload.receivers <= workload.connections)
BUDGETS = st.builds(Budget, cores=st.integers(1, 64), memory_mb=st.integers(100, 1_000_000))
WHOLE = Budget(cores=2)


def grow(workload: Workload, **factors: float) -> Workload:
    values = {name: getattr(workload, name) * factor for name, factor in factors.items()}
    return replace(
        workload, **{name: int(value) if name != "messages_per_second" else value for name, value in values.items()}
    )


@given(WORKLOADS, st.sampled_from(["messages_per_second", "message_bytes"]), st.integers(2, 10))
def test_more_or_larger_messages_never_take_less(workload: Workload, name: str, factor: int) -> None:
    less, more = (predict(one, WHOLE, MACHINE) for one in (workload, grow(workload, **{name: factor})))
    for before, after in zip(less.limits, more.limits, strict=True):
        assert after.needed >= before.needed * (1 - 1e-9), before.name
    assert more.network_mbit >= less.network_mbit * (1 - 1e-9)


@given(WORKLOADS, st.integers(2, 10))
def test_more_connections_never_take_less(workload: Workload, factor: int) -> None:
    less, more = (predict(one, WHOLE, MACHINE) for one in (workload, grow(workload, connections=factor)))
    for before, after in zip(less.limits, more.limits, strict=True):
        assert after.needed >= before.needed * (1 - 1e-9), before.name
    assert more.storm_cores_seconds >= less.storm_cores_seconds * (1 - 1e-9)


@given(WORKLOADS, BUDGETS, st.integers(2, 8))
def test_more_cores_never_carry_less(workload: Workload, budget: Budget, factor: int) -> None:
    budget = replace(budget, memory_mb=100_000_000)  # more shards keep more windows
    larger = replace(budget, cores=min(64, budget.cores * factor))
    assert most_messages(workload, larger, MACHINE) >= most_messages(workload, budget, MACHINE) * (1 - 1e-6)


@example(
    Workload(connections=1, subjects=9042, messages_per_second=58.0, fan_out=0.0, message_bytes=2, conflate_ms=0,
             delay_ms_max=1.0, messages_at_once=1.0, away_seconds=0.0, tls=False),
    Budget(cores=1, memory_mb=5442, descriptors=0, network_mbit=0),
)  # fmt: skip
@given(WORKLOADS, BUDGETS)
def test_the_most_is_where_it_just_fits(workload: Workload, budget: Budget) -> None:
    most = most_messages(workload, budget, MACHINE)
    if 0 < most < 1e8:
        assert predict(replace(workload, messages_per_second=most), budget, MACHINE).fits
        assert not predict(replace(workload, messages_per_second=most * 1.01 + 0.01), budget, MACHINE).fits
    count = most_connections(workload, budget, MACHINE)
    if 0 < count < 1 << 27:
        assert predict(replace(workload, connections=count), budget, MACHINE).fits
        more = replace(workload, connections=count + max(2, count // 100))
        full = fill_budget(budget, MACHINE)
        # More shards may leave too few subscribers on each to keep windows for, and need less memory than fewer did.
        is_same = count_shards(more, full, MACHINE) == count_shards(replace(workload, connections=count), full, MACHINE)
        assert not (is_same and predict(more, budget, MACHINE).fits)


@given(WORKLOADS, st.floats(1.5, 10))
def test_who_may_wait_longer_needs_no_more_cores(workload: Workload, factor: float) -> None:
    delay = workload.delay_ms_max / 1e3
    assert cores_at_delay(workload, MACHINE, delay * factor) <= cores_at_delay(workload, MACHINE, delay) * (1 + 1e-9)


@given(WORKLOADS)
def test_a_round_is_as_long_as_the_cores_make_it(workload: Workload) -> None:
    budget = fill_budget(WHOLE, MACHINE)
    found = find_round(workload, budget, MACHINE)
    if math.isfinite(found):
        assert cores_at_delay(workload, MACHINE, found) <= budget.cores * (1 + 1e-6)


@given(WORKLOADS)
def test_conflation_never_makes_more_deliveries(workload: Workload) -> None:
    assert deliveries(workload) <= deliveries(replace(workload, conflate_ms=0))


def test_conflation_bounds_what_one_subscription_gets() -> None:
    workload = Workload(connections=100, subjects=1, messages_per_second=1_000.0, conflate_ms=500)
    assert deliveries(workload) == pytest.approx(200.0)


def test_a_node_at_ease_wakes_up_for_each_message_and_a_busy_one_does_not() -> None:
    seldom = Workload(connections=100, subjects=100, messages_per_second=100.0)
    alone = 100 * (MACHINE.send_cost_us(100, 144) + MACHINE.publish_cost_us(144)) / 1e6
    assert cores_at_ease(seldom, WHOLE, MACHINE) > 3 * alone
    full = replace(seldom, messages_per_second=300_000.0)
    busy = 300_000 * (MACHINE.send_cost_us(100, 144) + MACHINE.publish_cost_us(144)) / 1e6
    assert cores_at_ease(full, WHOLE, MACHINE) == pytest.approx(busy, rel=0.2)


def test_when_the_cores_are_full_messages_leave_together_and_later() -> None:
    calm = predict(Workload(connections=1_000, subjects=1, messages_per_second=25.0), Budget(cores=1), MACHINE)
    busy = predict(Workload(connections=1_000, subjects=1, messages_per_second=2_000.0), Budget(cores=1), MACHINE)
    assert (calm.frames_a_send, calm.fits, busy.fits) == (1.0, True, True)
    assert busy.frames_a_send > 2
    assert busy.delay_ms > calm.delay_ms


BINDING: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("cpu", {"messages_per_second": 1e6}, {}),
    ("memory", {"connections": 1_000_000}, {"memory_mb": 1_000}),
    ("descriptors", {"connections": 1_000_000, "messages_per_second": 0.0}, {"descriptors": 1_024}),
    ("network", {"messages_per_second": 100.0, "message_bytes": 10_000}, {"network_mbit": 10}),
]


@pytest.mark.parametrize(("name", "asked", "given"), BINDING)
def test_the_limit_that_binds_is_named(name: str, asked: dict[str, Any], given: dict[str, Any]) -> None:
    prediction = predict(Workload(**asked), Budget(**given), MACHINE)
    assert (prediction.binding.name, prediction.fits) == (name, False)
    assert prediction.binding.advice


def test_more_shards_than_cores_are_taken_where_a_ring_holds_too_few() -> None:
    million = Workload(connections=1_000_000, subjects=1, messages_per_second=0.0)
    assert predict(million, WHOLE, MACHINE).shards == 55
    assert predict(million, WHOLE, machine(driver="readiness")).binding.name == "descriptors"


def test_a_node_that_never_rests_may_carry_more_than_one_that_wakes_up() -> None:
    workload = Workload(connections=1_000, subjects=1, messages_per_second=100.0)
    carried = [most_messages(workload, WHOLE, machine(full_share=share)) for share in (0.7, 1.0)]
    assert carried[0] > carried[1]


def test_limits_that_have_to_be_raised_are_told() -> None:
    settings = predict(Workload(connections=2_000_000, subjects=10), WHOLE, MACHINE).settings
    assert settings == {"connections_max": 2_000_000}


def test_a_storm_takes_the_connects_and_what_was_missed() -> None:
    quiet = Workload(connections=100_000, subjects=100, messages_per_second=0.0)
    assert predict(quiet, WHOLE, MACHINE).storm_cores_seconds == pytest.approx(3.5)
    busy = replace(quiet, messages_per_second=1_000.0, away_seconds=10.0)  # 100 missed each
    assert predict(busy, WHOLE, MACHINE).storm_cores_seconds == pytest.approx(3.5 + 100_000 * 100 * 0.2e-6)
    assert predict(replace(quiet, tls=True), WHOLE, machine(tls_connect_us=65.0)).storm_cores_seconds == pytest.approx(
        10.0
    )


def test_tls_is_paid_for_at_the_connect_with_each_send_and_in_memory() -> None:
    known = machine(tls_connect_us=65.0, tls_send_us=0.5, tls_byte_us=0.001, tls_kb=4.0)
    plain = Workload(connections=10_000, subjects=10, messages_per_second=20.0)
    secret = replace(plain, tls=True)
    assert send_us(secret, known) - send_us(plain, known) == pytest.approx(0.5 + 0.234)
    more = predict(secret, WHOLE, known).node_mb - predict(plain, WHOLE, known).node_mb
    assert more == pytest.approx(40.0)
    assert predict(secret, WHOLE, known).cores > predict(plain, WHOLE, known).cores
    assert send_us(secret, MACHINE) == send_us(plain, MACHINE), "what was not measured is left out"


def test_messages_that_come_together_wake_the_node_once() -> None:
    alone = Workload(connections=1_000, subjects=1_000, messages_per_second=4_000.0)
    cores = [predict(replace(alone, messages_at_once=at_once), WHOLE, MACHINE).cores for at_once in (1.0, 4.0)]
    assert cores[0] > 1.5 * cores[1]


def test_logs_are_counted_as_far_as_the_node_keeps_them() -> None:
    workload = Workload(connections=10, subjects=10, messages_per_second=1_000.0, message_bytes=880)
    few, many = (predict(workload, WHOLE, MACHINE, Node(log_messages_max=n)) for n in (100, 1_000))
    assert many.node_mb - few.node_mb == pytest.approx(9.0)
