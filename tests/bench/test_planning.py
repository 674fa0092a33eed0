"""`godwit plan` against a real node: a predicted workload is run, and each predicted number has a measured counterpart.

`python -m benchmarks.planning` compares CPU time and the kernel's memory on a quiet machine: here other processes disturb both. The
memory of the process itself is not disturbed.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from benchmarks.planning import RESULT, WORKLOADS
from godwit.bench.targets import BenchFailed
from godwit.plan.check import check_prediction
from godwit.plan.machine import Machine, read_machine
from godwit.plan.measure import measure_machine

PROCESS, KERNEL = "memory of the process", "memory of the kernel"
FAR = 2.0


def measure_or_take_kept() -> Machine:
    """A machine with other work may be too busy to be measured, and the plan reports that: then the benchmark's measurements are used."""
    try:
        return measure_machine("auto", print)
    except BenchFailed as refused:
        assert "the machine is too busy to measure" in str(refused)
        return read_machine(json.loads(RESULT.read_text("utf-8"))["figures"][0])


@pytest.mark.long
def test_what_was_measured_here_predicts_what_is_played_here() -> None:
    machine = measure_or_take_kept()
    workload = WORKLOADS["50 subjects × 100, 400 bytes, 200 a second"]
    compared = check_prediction(replace(workload, connections=2_000), machine, print)
    names = [one.name.split(",")[0].split(" (")[0] for one in compared]
    assert [name for name in names if name != KERNEL][:3] == [PROCESS, "all connect and subscribe", "the workload"]
    assert all(one.predicted > 0 and one.measured > 0 for one in compared), compared
    assert 1 / FAR < compared[0].ratio < FAR, compared[0]
