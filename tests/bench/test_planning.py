"""`godwit plan` against the real thing: what it predicts of a workload is played, and comes out in that order of magnitude.

How near, `python -m benchmarks.planning` measures on a machine of its own: here others are at work, and a test may not hang on speed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.planning import WORKLOADS
from godwit.plan.check import check_prediction
from godwit.plan.measure import measure_machine

FAR = 5.0


@pytest.mark.long
def test_what_was_measured_here_predicts_what_is_played_here() -> None:
    machine = measure_machine("auto", print)
    workload = WORKLOADS["50 subjects × 100, 400 bytes, 200 a second"]
    compared = check_prediction(replace(workload, connections=2_000), machine, print)
    names = [one.name.split(",")[0].split(" (")[0] for one in compared]
    assert names[:4] == ["memory of the process", "memory of the kernel", "all connect and subscribe", "the workload"]
    far = [one for one in compared if not 1 / FAR < one.ratio < FAR]
    assert not far, far
