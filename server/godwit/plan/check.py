"""Compares a prediction with a real run: the workload on one core, for a few seconds.

It can run one subscription for each connection, and the connections of one ring; a larger workload is refused. Owns the
comparison; bench has the loads and their metrics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ..bench.million import RING_SPARE
from ..bench.shape import Shape, connect, pause, publish, steps_of
from ..errors import GodwitError
from .machine import FRAME_OVERHEAD_BYTES, Machine
from .measure import ALONE, Show, run_shape
from .model import Node, messages_a_core, most_messages, predict, storm_core_seconds
from .workload import Budget, Workload

WARM_SECONDS, STEADY_SECONDS = 1.0, 5.0
SLICES = 4
"""Slices of the steady part; the one with the least other activity of the machine is used."""
AHEAD = 64
"""The most unacknowledged messages of a subject, if the node is to be saturated."""
FULL_SECONDS, FULL_MOST = 2.0, 60_000
MANY = 2_000
"""Fewer connections need less memory than the machine's noise."""
BUSY = 0.75
"""A node that was less busy was not saturated; the generator was the limit, and nothing is compared."""
READ_BYTES_MAX = 8_000
"""The generator reads 16 kB at once, so a longer send is two reads. Sends are counted from reads only if these are shorter
than half of it.
"""
AHEAD_LEAST = 4
"""With fewer messages the node would be idle at times."""
NEAR = 0.25
"""The tolerated error of a prediction."""


class WorkloadTooLarge(GodwitError):
    """This machine cannot run the workload; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One metric, predicted and measured."""

    name: str
    unit: str
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured if self.measured else math.inf

    @property
    def is_near(self) -> bool:
        return abs(self.ratio - 1.0) <= NEAR


def plan_check(workload: Workload, machine: Machine) -> Shape:
    """The workload as a load. Raises WorkloadTooLarge."""
    if workload.conflate_ms:
        raise WorkloadTooLarge("conflation is predicted, but cannot be tried here yet")
    if abs(workload.subscriptions - 1.0) > 0.01:
        raise WorkloadTooLarge("only one subscription a connection can be tried here: leave fan_out out")
    holds = int(machine.descriptors * (1 - RING_SPARE))
    if workload.connections > holds:
        raise WorkloadTooLarge(f"one shard holds {holds:,} connections here, not {workload.connections:,}")
    rate = workload.messages_per_second
    most = most_messages(replace(workload, delay_ms_max=50.0), Budget(cores=1), machine)
    if rate > 0.7 * most:
        raise WorkloadTooLarge(f"one core carries about {most:,.0f} messages a second of these, not {rate:,.0f}")
    steps = [connect(), pause(0.6, "idle")]
    if rate:
        steps += [publish("warm", int(rate * WARM_SECONDS), rate=rate)]
        steps += [publish(f"steady {n + 1}", int(rate * STEADY_SECONDS / SLICES), rate=rate) for n in range(SLICES)]
    most_ahead = max(AHEAD_LEAST, min(AHEAD, READ_BYTES_MAX // (workload.message_bytes + FRAME_OVERHEAD_BYTES)))
    ahead = {"in_flight": most_ahead * min(workload.subjects, 100), "ahead_max": most_ahead}
    together = min(most_ahead, ahead["in_flight"] / workload.subjects)
    sends = FULL_SECONDS * 1e6 / machine.send_cost_us(workload.connections, workload.message_bytes, max(1.0, together))
    full = int(min(FULL_MOST, sends * max(1.0, together) / workload.receivers))
    steps += [publish("filling", full // 4, **ahead), publish("full", full, **ahead)]
    return Shape(
        workload.connections,
        workload.subjects,
        steps,
        publishers=1,
        is_acked=True,
        content_bytes=max(60, workload.message_bytes),
    )


def check_prediction(workload: Workload, machine: Machine, show: Show) -> list[Compared]:
    """Run the workload and compare; raises WorkloadTooLarge, or BenchFailed if the run failed."""
    return compare(workload, machine, play(workload, machine, show))


def play(workload: Workload, machine: Machine, show: Show) -> dict[str, Any]:
    """The outcome of a run; raises WorkloadTooLarge, or BenchFailed."""
    return run_shape(machine.driver, plan_check(workload, machine), show, "check", workload.tls)


def compare(workload: Workload, machine: Machine, result: dict[str, Any]) -> list[Compared]:
    """The metrics of a run with their predictions."""
    steps, one = steps_of(result), Budget(cores=1)
    quiet = predict(replace(workload, messages_per_second=0.0), one, machine, Node(log_messages_max=1))
    storm = storm_core_seconds(replace(workload, messages_per_second=0.0), machine, Node())
    idle, full = steps["idle"], steps["full"]
    compared = [Compared("memory of the process", "MB", quiet.node_mb, idle["pss_kb"] / 1e3)]
    if workload.connections >= MANY:
        kernel = (idle["kernel_kb"] - result["machine_before"]["kernel_kb"]) / 2e3
        if kernel > 0:  # it is the whole machine's: others gave back more meanwhile than these connections took
            compared.append(Compared("memory of the kernel", "MB", quiet.kernel_mb, kernel))
        compared.append(Compared("all connect and subscribe", "s of a core", storm, steps["connect"]["cpu_seconds"]))
    steady = [step for name, step in steps.items() if name.startswith("steady ")]
    if steady:
        alone = [step for step in steady if step["delivered"] <= ALONE * step["reads"]]
        least = min(alone or steady, key=lambda step: float(step["cpu_seconds"] / step["seconds"]))
        cores = least["cpu_seconds"] / least["seconds"]
        subject = "the workload" if alone else "the workload (messages had to wait: the machine is busy)"
        # one publisher plays them all: as many leave it at once as were due when it woke up
        played = replace(workload, messages_at_once=max(1.0, least["published"] / max(1, least["writes"])))
        compared.append(Compared(subject, "cores", predict(played, one, machine).cores, cores))
    together = full["delivered"] / max(1, full["reads"])
    is_told = together * (workload.message_bytes + FRAME_OVERHEAD_BYTES) < READ_BYTES_MAX
    if is_told and full["cpu_seconds"] >= BUSY * full["seconds"]:
        carried = full["published"] / full["cpu_seconds"]
        predicted = messages_a_core(workload, machine, together)
        compared.append(Compared(f"a core full of it, {together:.0f} frames a send", "messages/s", predicted, carried))
    return compared
