"""Who is put under `godwit verify` to see whether it notices: honest brokers, nodes that break one promise each, and a rival that
drops in silence what a stalled reader has not taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from godwit.verify.brokers import OTHERS, Broker, GodwitBroker
from godwit.verify.judge.finding import Promise
from godwit.verify.plan import Fault, Harm, Kind, Plan, Scale, make_plan
from godwit.verify.scene import Scene, run_scene

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "godwit-sabotage"
WIRE_KINDS = frozenset({Kind.SUBJECT, Kind.PATTERN, Kind.CONFLATED, Kind.SLOW})
RUN_S_MAX = 180.0
"""A run takes some 25 s; on a machine that is very busy its end is waited for, but not for ever."""
SCALE = Scale(seconds=20, subscribers=60, publishers=4, rate=400, size=200)
RIVAL_SCALE = replace(SCALE, subscribers=20, rate=600)


@dataclass(frozen=True, slots=True)
class Culprit:
    """A broker, what is done to its clients, and the promises by which it may be found out; none: it is honest."""

    name: str
    make: Callable[[], Broker]
    found_by: frozenset[Promise] = frozenset()
    scale: Scale = SCALE
    harms: frozenset[Harm] = frozenset({Harm.STALL})
    """Nothing is cut where a broken node is tried, so that no resume can mend what was done."""
    arrange: Callable[[Plan], Plan] = lambda plan: plan
    """What of the plan is not left to the lots."""


def broken(crime: str, each: int) -> Callable[[], Broker]:
    """The node that commits a crime on one in so many."""
    return lambda: GodwitBroker(command=[str(PROGRAM), "--crime", crime, "--each", str(each)])


def stall_one_of_everything(plan: Plan) -> Plan:
    """One reader of all subjects stops for ten seconds: some 6,000 messages, of which the broker queues 1,000. The run is long enough
    for it where the machine is slow to begin.
    """
    wide = next(mine for mine in plan.subscribers if mine.kind is Kind.PATTERN)
    subscribers = [replace(mine, selector="/verify/**") if mine is wide else mine for mine in plan.subscribers]
    return replace(plan, subscribers=subscribers, faults=[Fault(3.0, Harm.STALL, 10.0, (wide.name,))])


LOSS = frozenset({Promise.NO_LOSS, Promise.GAPS})
CULPRITS = (
    Culprit("the real node", GodwitBroker),
    Culprit("honest behind the same relay", broken("none", 1)),
    Culprit("loses one message in 10,000", broken("lose", 10_000), LOSS),
    Culprit("repeats one in 10,000", broken("repeat", 10_000), frozenset({Promise.NO_REPEAT, Promise.GAPS})),
    Culprit("reorders one in 10,000", broken("reorder", 10_000), LOSS | {Promise.ORDER}),
    Culprit("hides one gap", broken("hide-gap", 3), LOSS),
    Culprit(
        "Mosquitto QoS 1, cut connections",
        OTHERS["mosquitto"],
        scale=replace(RIVAL_SCALE, rate=150),
        harms=frozenset({Harm.CUT}),
    ),
    Culprit(
        "Mosquitto QoS 1, a stalled reader",
        OTHERS["mosquitto"],
        frozenset({Promise.NO_LOSS}),
        replace(RIVAL_SCALE, seconds=35),
        arrange=stall_one_of_everything,
    ),
)


async def try_culprit(culprit: Culprit, seed: int) -> Scene:
    """Raises BrokerMissing where it is not installed, TimeoutError where the run does not end."""
    broker = culprit.make()
    plan = culprit.arrange(make_plan(seed, culprit.scale, WIRE_KINDS & broker.kinds, culprit.harms))
    async with asyncio.timeout(RUN_S_MAX):
        return await run_scene(plan, broker, lambda scene: None)


def is_caught(culprit: Culprit, scene: Scene) -> bool:
    """The honest one is not found guilty; each other one is, and of what it did."""
    if not culprit.found_by:
        return not scene.findings.total
    return bool(set(scene.findings.counts) & culprit.found_by)
