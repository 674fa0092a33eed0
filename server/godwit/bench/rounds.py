"""Runs a load's rounds: one run of each server in turn (A B A B …), each with a new process, so that other activity of the
machine affects all servers equally. The server has one core, the generator another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .certificate import NAME
from .generator import run_plan
from .loads import Load
from .shape import Figures, Shape
from .targets import BenchFailed, Order, Target, start_target

Show = Callable[[str], None]

RETAKES_MAX = 3
"""How often a round is repeated in all, if a server fell behind and merged messages of a load with one frame for each send."""
MERGED_MAX = 1.02

SLOW_SHARE = 0.2
"""Servers that do not merge messages get this share of a saturated load's messages: their metrics are the same, and the load
ends in time.
"""


@dataclass(slots=True)
class Measured:
    """The results of one server's rounds."""

    figures: list[Figures] = field(default_factory=list)
    runs: list[list[dict[str, Any]]] = field(default_factory=list)
    retaken: int = 0


def choose_cores() -> tuple[int | None, int | None]:
    """One core for the server, another for the generator; none if there is only one, or the system cannot pin processes."""
    if not hasattr(os, "sched_getaffinity"):
        return None, None
    cores = sorted(os.sched_getaffinity(0))
    return (cores[0], cores[-1]) if len(cores) > 1 else (None, None)


def run_rounds(
    load: Load,
    targets: Sequence[Target],
    rounds: int,
    driver: str,
    size: float,
    show: Show,
    retakes_max: int = RETAKES_MAX,
) -> dict[str, Measured]:
    """All rounds of a load, by server. Raises BenchFailed if a delivery is missing or a server fails."""
    measured = {target.name: Measured() for target in targets}
    taken = retaken = 0
    while taken < rounds:
        show(f"{load.name}: round {taken + 1} of {rounds}")
        shapes = load.shapes(size)
        turn = {target.name: [_run_once(load, target, shape, driver, show) for shape in shapes] for target in targets}
        figures = {name: load.figures(results, shapes) for name, results in turn.items()}
        if load.is_one_frame_a_send and retaken < retakes_max and _has_merged(figures, targets):
            retaken += 1
            continue
        taken += 1
        for name, results in turn.items():
            measured[name].runs.append(results)
            measured[name].figures.append(figures[name])
    for found in measured.values():
        found.retaken = retaken
    return measured


def _has_merged(figures: dict[str, Figures], targets: Sequence[Target]) -> bool:
    """Whether this node or the baseline merged messages. A rival that does so at this pace would do it in every round."""
    return any(
        value > MERGED_MAX
        for target in targets
        for name, value in figures[target.name].items()
        if target.is_ours() and name.startswith("deliveries_per_read")
    )


def _run_once(load: Load, target: Target, shape: Shape, driver: str, show: Show) -> dict[str, Any]:
    if load.check is not None:
        load.check(shape)
    server_core, generator_core = choose_cores()
    order = Order(
        driver=target.driver or driver, shards=shape.shards or load.shards, limits=load.limits, is_killed=shape.is_last
    )
    with start_target(target, order, server_core) as running:
        plan = {
            **shape.plan(),
            "dialect": target.dialect,
            "address": running.address,
            "pids": running.pids,
            "core": generator_core,
        }
        if running.certificate is not None:
            plan["tls"] = {"authorities_file": str(running.certificate), "name": NAME}
        _fit(plan, target)
        result = run_plan(plan, lambda text: show(f"{load.name}: {target.name}: {text}"))
    if result["fault"] is not None or not result["is_exact"]:
        counts = {key: result["steps"][-1][key] for key in ("lost", "repeated", "missed")} if result["steps"] else {}
        raise BenchFailed(f"{load.name} against {target.name}: {result['fault'] or f'not exact: {counts}'}")
    return result


def _fit(plan: dict[str, Any], target: Target) -> None:
    """Adapt a load to a protocol: without acknowledgements, the window counts deliveries."""
    if target.subject_publishers:
        plan["publishers"] = min(plan["publishers"], 1) * plan["subjects"]
    if not target.has_acks and plan["is_acked"]:
        plan["is_acked"] = False
        plan["steps"] = [
            {**step, "ahead_max": step["in_flight"], "in_flight": 0} if step.get("in_flight") else step
            for step in plan["steps"]
        ]
    if target.name == "baseline" or (target.program and not target.name.startswith("baseline")):
        plan["steps"] = [
            {**step, "messages": int(step["messages"] * SLOW_SHARE)} if step.get("ahead_max") else step
            for step in plan["steps"]
        ]
