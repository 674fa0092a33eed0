"""The brokers that test `godwit verify` itself: honest brokers, nodes that break one guarantee each, and another broker that
silently drops messages of a stalled reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from godwit.verify.brokers import OTHERS, Broker, GodwitBroker
from godwit.verify.judge.finding import Guarantee
from godwit.verify.plan import Fault, FaultKind, Kind, Plan, Scale, make_plan
from godwit.verify.verify_run import VerifyRun, run_plan

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "godwit-mutants"
WIRE_KINDS = frozenset({Kind.SUBJECT, Kind.PATTERN, Kind.CONFLATED, Kind.SLOW})
RUN_S_MAX = 300.0
"""A run takes some 25 s; on a machine that is very busy its end is waited for, but not for ever."""
RIVAL_QUEUE = 1_000
"""Messages that Mosquitto queues for a client, as it comes."""
SCALE = Scale(seconds=20, subscribers=60, publishers=4, rate=400, size=200)
RIVAL_SCALE = replace(SCALE, subscribers=20, rate=600)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broker, what is done to its clients, and the guarantees it may be found to break; none if it is honest."""

    name: str
    make: Callable[[], Broker]
    found_by: frozenset[Guarantee] = frozenset()
    scale: Scale = SCALE
    fault_kinds: frozenset[FaultKind] = frozenset({FaultKind.STALL})
    """Nothing is cut where a broken node is tried, so that no resume can mend what was done."""
    arrange: Callable[[Plan], Plan] = lambda plan: plan
    """What of the plan is not left to the lots."""
    is_enough: Callable[[VerifyRun], bool] = lambda run: True
    """Whether so much came to pass that the mutation was committed: a slow machine is given a run twice as long, until it was."""


def broken(mutation: str, each: int) -> Callable[[], Broker]:
    """The node that commits a mutation on one in so many."""
    return lambda: GodwitBroker(command=[str(PROGRAM), "--mutation", mutation, "--each", str(each)])


def stall_one_of_everything(plan: Plan) -> Plan:
    """One reader of all subjects stops for ten seconds or more: some 6,000 messages, of which the broker queues 1,000. The run is long
    enough for it where the machine is slow to begin.
    """
    wide = next(mine for mine in plan.subscribers if mine.kind is Kind.PATTERN)
    subscribers = [replace(mine, selector="/verify/**") if mine is wide else mine for mine in plan.subscribers]
    return replace(
        plan, subscribers=subscribers, faults=[Fault(3.0, FaultKind.STALL, plan.scale.seconds - 25.0, (wide.name,))]
    )


def count_deliveries(run: VerifyRun) -> int:
    return sum(subscriber.checker.counts.messages for subscriber in run.subscribers)


def has_met_one_in_10_000(run: VerifyRun) -> bool:
    return count_deliveries(run) >= 25_000


def has_met_gaps(run: VerifyRun) -> bool:
    """One of the three gaps that the node reported is hidden."""
    return sum(subscriber.checker.counts.gaps for subscriber in run.subscribers) >= 5


def has_overrun_a_queue(run: VerifyRun) -> bool:
    """While one did not read more was published than is queued for it, with room to spare."""
    stalled_s = sum(done.to_ms - done.from_ms for done in run.injection.done) / 1000 if run.injection else 0.0
    share = stalled_s / (run.published_until_ms / 1000)
    return run.context.expected.acknowledged_count * share >= 2 * RIVAL_QUEUE


LOSS = frozenset({Guarantee.NO_LOSS, Guarantee.GAPS})
MUTANTS = (
    Mutant("the real node", GodwitBroker),
    Mutant("honest behind the same relay", broken("none", 1)),
    Mutant("loses one message in 10,000", broken("lose", 10_000), LOSS, is_enough=has_met_one_in_10_000),
    Mutant(
        "repeats one in 10,000",
        broken("repeat", 10_000),
        frozenset({Guarantee.NO_REPEAT, Guarantee.GAPS}),
        is_enough=has_met_one_in_10_000,
    ),
    Mutant(
        "reorders one in 10,000",
        broken("reorder", 10_000),
        LOSS | {Guarantee.ORDER},
        is_enough=has_met_one_in_10_000,
    ),
    Mutant("hides one gap", broken("hide-gap", 3), LOSS, is_enough=has_met_gaps),
    Mutant(
        "Mosquitto QoS 1, cut connections",
        OTHERS["mosquitto"],
        scale=replace(RIVAL_SCALE, rate=150),
        fault_kinds=frozenset({FaultKind.CUT}),
    ),
    Mutant(
        "Mosquitto QoS 1, a stalled reader",
        OTHERS["mosquitto"],
        frozenset({Guarantee.NO_LOSS}),
        replace(RIVAL_SCALE, seconds=35),
        arrange=stall_one_of_everything,
        is_enough=has_overrun_a_queue,
    ),
)


async def try_mutant(mutant: Mutant, seed: int) -> VerifyRun:
    """Raises BrokerMissing where it is not installed, TimeoutError where the run does not end."""
    scale = mutant.scale
    async with asyncio.timeout(RUN_S_MAX):
        while True:
            broker = mutant.make()
            plan = mutant.arrange(make_plan(seed, scale, WIRE_KINDS & broker.kinds, mutant.fault_kinds))
            run = await run_plan(plan, broker, lambda run: None)
            if run.findings.total or mutant.is_enough(run):
                return run
            scale = replace(scale, seconds=scale.seconds * 2)


def is_caught(mutant: Mutant, run: VerifyRun) -> bool:
    """The honest one is not found guilty; each other one is, and of what it did."""
    if not mutant.found_by:
        return not run.findings.total
    return bool(set(run.findings.counts) & mutant.found_by)
