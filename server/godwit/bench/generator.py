"""Calls the native load generator with a plan, shows progress, and returns the result. Plans and results are plain JSON
values, declared in loadgen/src/plan.rs and loadgen/src/loadgen.rs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from godwit._engine import LoadGenerator

Plan = dict[str, Any]
RunResult = dict[str, Any]
Show = Callable[[str], None]

LOOK_EVERY_SECONDS = 0.2


def run_plan(plan: Plan, show: Show) -> RunResult:
    """Run a plan to its end; ^C stops the load first. Raises ValueError if the plan is not valid."""
    loadgen = LoadGenerator(json.dumps(plan))
    loadgen.start()
    try:
        while not (progress := json.loads(loadgen.progress()))["is_over"]:
            show(_describe(progress))
            time.sleep(LOOK_EVERY_SECONDS)
    except BaseException:
        loadgen.stop()
        raise
    result: RunResult = json.loads(loadgen.result())
    return result


def _describe(progress: dict[str, Any]) -> str:
    counts = progress["counts"]
    return (
        f"{progress['step']} {progress['seconds']:.0f} s: {counts['live']:,} connections, "
        f"{counts['published']:,} published, {counts['delivered']:,} delivered"
    )
