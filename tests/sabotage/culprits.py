"""Who is put under `godwit verify` to see whether it notices: the honest node, and nodes that break one promise each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from godwit.verify.brokers import GodwitBroker
from godwit.verify.judge.finding import Promise
from godwit.verify.plan import Harm, Kind, Plan, Scale, make_plan
from godwit.verify.scene import Scene, run_scene

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "godwit-sabotage"
WIRE_KINDS = frozenset({Kind.SUBJECT, Kind.PATTERN, Kind.CONFLATED, Kind.SLOW})
SCALE = Scale(seconds=20, subscribers=60, publishers=4, rate=400, size=200)


@dataclass(frozen=True, slots=True)
class Culprit:
    """A broken node: its crime, one in how many, and the promises by which it may be found out."""

    name: str
    crime: str
    each: int
    found_by: frozenset[Promise]


CULPRITS = (
    Culprit("honest", "none", 1, frozenset()),
    Culprit("loses one message in 10,000", "lose", 10_000, frozenset({Promise.NO_LOSS, Promise.GAPS})),
    Culprit("repeats one in 10,000", "repeat", 10_000, frozenset({Promise.NO_REPEAT, Promise.GAPS})),
    Culprit("reorders one in 10,000", "reorder", 10_000, frozenset({Promise.NO_LOSS, Promise.ORDER, Promise.GAPS})),
    Culprit("hides one gap", "hide-gap", 3, frozenset({Promise.NO_LOSS, Promise.GAPS})),
)


def plan_of(seed: int, scale: Scale = SCALE) -> Plan:
    """Nothing is cut, so that no resume can mend what was done."""
    return make_plan(seed, scale, WIRE_KINDS, frozenset({Harm.STALL}))


async def try_culprit(culprit: Culprit, seed: int, scale: Scale = SCALE) -> Scene:
    command = [str(PROGRAM), "--crime", culprit.crime, "--each", str(culprit.each)]
    return await run_scene(plan_of(seed, scale), GodwitBroker(command=command), lambda scene: None)


def is_caught(culprit: Culprit, scene: Scene) -> bool:
    """The honest one is not found guilty; each other one is, and of what it did."""
    if not culprit.found_by:
        return not scene.findings.total
    return bool(set(scene.findings.counts) & culprit.found_by)
