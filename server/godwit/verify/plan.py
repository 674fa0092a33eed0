"""The plan of a run, derived from its seed: subjects, publishers, subscribers, and the faults with their times and targets.

The same seed and scale give the same plan, so that a finding can be reproduced. Pure: times are seconds from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeVar

from ..client.codec.encodings import EncodingName
from .judge.content import Style, mix

T = TypeVar("T")
Transport = Literal["auto", "sse", "poll"]

ROOT = "/verify"
WARM_UP_S = 2.0
TRANSPORTS: tuple[Transport, ...] = ("auto", "sse", "poll")  # of JavaScript clients, in turn
CALM_S = 4.0  # before the end nothing is disturbed
BUSY_SHARE = 60  # percent of the publishes go to the busy subjects


class Kind(StrEnum):
    """The kinds of subscribers."""

    SUBJECT = "subject"
    PATTERN = "pattern"
    CONFLATED = "conflated"
    SLOW = "slow"
    SAVED = "saved"
    PYTHON = "python"
    JAVASCRIPT = "javascript"


class FaultKind(StrEnum):
    """The kinds of faults of the broker and its clients."""

    CUT = "cut"
    STORM = "storm"
    HALF_OPEN = "half-open"
    STALL = "stall"
    FREEZE = "freeze"
    KILL = "kill"
    DRAIN = "drain"
    CLOCK = "clock"
    FILES = "files"


FAULT_SENTENCES = {
    FaultKind.CUT: "a third of the connections is reset in the middle of a frame",
    FaultKind.STORM: "all connections are reset at once",
    FaultKind.HALF_OPEN: "connections go silent: no data passes, and neither side notices",
    FaultKind.STALL: "subscribers stop reading",
    FaultKind.FREEZE: "the node is stopped (SIGSTOP) and continued",
    FaultKind.KILL: "the node is killed (SIGKILL) and restarted",
    FaultKind.DRAIN: "the node is shut down (SIGTERM) and restarted",
    FaultKind.CLOCK: "the node's clock jumps",
    FaultKind.FILES: "other connections fill the node's file table",
}
OF_NODE = frozenset({FaultKind.FREEZE, FaultKind.KILL, FaultKind.DRAIN, FaultKind.CLOCK, FaultKind.FILES})
"""Faults that need a node that was started here."""
DECK = (
    *(
        FaultKind.CUT,
        FaultKind.KILL,
        FaultKind.STALL,
        FaultKind.HALF_OPEN,
        FaultKind.FREEZE,
        FaultKind.CUT,
        FaultKind.FILES,
        FaultKind.STORM,
        FaultKind.DRAIN,
    ),
    *(FaultKind.CLOCK, FaultKind.STALL, FaultKind.CUT, FaultKind.HALF_OPEN),
)


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of a run."""

    seconds: float = 60.0
    subscribers: int = 200
    publishers: int = 6
    rate: float = 150.0  # publishes a second, all together
    size: int = 120  # bytes of padding in most contents


@dataclass(frozen=True, slots=True)
class PublisherPlan:
    number: int
    encoding: EncodingName
    is_keyed: bool  # publishes again what was not answered
    in_flight: int


@dataclass(frozen=True, slots=True)
class SubscriberPlan:
    name: str
    kind: Kind
    selector: str
    encoding: EncodingName
    conflate_ms: int | None = None
    resumes_by: Literal["resume_token", "positions", "both"] = "resume_token"
    pace: float = 0.0  # messages a second that a slow one reads
    on_gap: Literal["snapshot", "oldest"] = "snapshot"
    transport: Transport = "auto"  # what carries a JavaScript client


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: its start, its duration, and its target."""

    at_s: float
    fault_kind: FaultKind
    for_s: float
    targets: tuple[str, ...] = ()
    amount: float = 0.0  # of a clock's jump: seconds; of a cut: bytes that still pass


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    scale: Scale
    styles: dict[str, Style]
    publishers: list[PublisherPlan]
    subscribers: list[SubscriberPlan]
    faults: list[Fault] = field(default_factory=list)
    root: str = ROOT

    def subject_of(self, publisher: int, number: int) -> str:
        """The subject of a publish; most go to the few busy subjects."""
        busy = [subject for subject in self.styles if "/busy/" in subject]
        calm = [subject for subject in self.styles if "/busy/" not in subject]
        bits = mix(self.seed, 7, publisher, number)
        subjects = busy if bits % 100 < BUSY_SHARE else calm
        return subjects[(bits >> 32) % len(subjects)]


class SeededRandom:
    """Consecutive numbers of a seed."""

    def __init__(self, *seed: int) -> None:
        self._seed, self._drawn = seed, 0

    def draw(self, below: int) -> int:
        self._drawn += 1
        return mix(*self._seed, self._drawn) % below

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.draw(1_000_000) / 1_000_000

    def choose(self, among: Sequence[T]) -> T:
        return among[self.draw(len(among))]

    def sample(self, among: Sequence[T], count: int) -> list[T]:
        rest, chosen = list(among), []
        for _ in range(min(count, len(rest))):
            chosen.append(rest.pop(self.draw(len(rest))))
        return chosen


def make_plan(
    seed: int, scale: Scale, kinds: frozenset[Kind], fault_kinds: frozenset[FaultKind], root: str = ROOT
) -> Plan:
    """Make the plan. All subjects are below `root`, which no other client uses or has used."""
    styles = _draw_styles(root)
    subscribers = _draw_subscribers(SeededRandom(seed, 1), scale.subscribers, kinds, list(styles), root)
    publishers = [
        PublisherPlan(number, "json" if number % 2 else "binary", number % 3 != 0, (1, 8, 32)[number % 3])
        for number in range(1, scale.publishers + 1)
    ]
    names = [subscriber.name for subscriber in subscribers]
    faults = _draw_faults(
        SeededRandom(seed, 2), scale.seconds, names, [fault_kind for fault_kind in DECK if fault_kind in fault_kinds]
    )
    return Plan(seed, scale, styles, publishers, subscribers, faults, root)


def _draw_styles(root: str) -> dict[str, Style]:
    styles = {f"{root}/{group}/{number}": Style(number % 4) for group in "ab" for number in range(10)}
    return styles | {f"{root}/busy/0": Style.OBJECT, f"{root}/busy/1": Style.TEXT}


def _draw_subscribers(
    random: SeededRandom, count: int, kinds: frozenset[Kind], subjects: list[str], root: str
) -> list[SubscriberPlan]:
    shares = {
        Kind.SUBJECT: 45,
        Kind.PATTERN: 22,
        Kind.CONFLATED: 12,
        Kind.SLOW: 5,
        Kind.SAVED: 6,
        Kind.PYTHON: 7,
        Kind.JAVASCRIPT: 3,
    }
    chosen = [kind for kind in shares if kind in kinds]
    total = sum(shares[kind] for kind in chosen)
    wanted = {kind: max(1, round(count * shares[kind] / total)) for kind in chosen}
    if chosen:  # rounding is made good by the largest
        wanted[chosen[0]] = max(1, wanted[chosen[0]] + count - sum(wanted.values()))
    return [
        _draw_subscriber(random, kind, number, subjects, root)
        for kind in chosen
        for number in range(1, wanted[kind] + 1)
    ]


def _draw_subscriber(random: SeededRandom, kind: Kind, number: int, subjects: list[str], root: str) -> SubscriberPlan:
    encodings: tuple[EncodingName, ...] = ("json", "binary")
    encoding = random.choose(encodings)
    name = f"{kind}-{number}"
    patterns = [f"{root}/{rest}" for rest in ("a/*", "b/*", "a/**", "b/*", "*/3", "*/2", "busy/*", "**")]
    selector = subjects[random.draw(len(subjects))]
    if kind is Kind.PATTERN or (kind is not Kind.SUBJECT and random.draw(2)):
        selector = random.choose(patterns)
    transport = TRANSPORTS[(number - 1) % len(TRANSPORTS)] if kind is Kind.JAVASCRIPT else "auto"
    if transport != "auto":
        encoding = "json"  # over HTTP there is no other
    if kind is Kind.SLOW:  # one that the log will move past
        selector = random.choose([f"{root}/{rest}" for rest in ("busy/0", "busy/1", "busy/*", "**")])
    return SubscriberPlan(
        name,
        kind,
        selector,
        encoding,
        random.choose((100, 300, 1_000)) if kind is Kind.CONFLATED else None,
        random.choose(("resume_token", "positions", "both")),
        random.between(3, 15) if kind is Kind.SLOW else 0.0,
        random.choose(("snapshot", "snapshot", "oldest")),
        transport,
    )


def _draw_faults(random: SeededRandom, seconds: float, names: list[str], deck: list[FaultKind]) -> list[Fault]:
    """Choose faults one after the other from a shuffled list, which is repeated; faults of the node do not overlap."""
    faults: list[Fault] = []
    at = WARM_UP_S
    while deck:
        for fault_kind in deck:
            fault = _draw_fault(random, at, fault_kind, names)
            if fault.at_s + fault.for_s > seconds - CALM_S:
                return faults
            faults.append(fault)
            at += random.between(0.8, 2.5) + (fault.for_s if fault_kind in OF_NODE else 0)
    return faults


def _draw_fault(random: SeededRandom, at: float, fault_kind: FaultKind, names: list[str]) -> Fault:
    few, many = max(1, len(names) // 10), max(1, len(names) // 3)
    match fault_kind:
        case FaultKind.CUT:
            return Fault(at, fault_kind, 0, tuple(random.sample(names, many)), random.draw(2_000))
        case FaultKind.HALF_OPEN:
            return Fault(at, fault_kind, random.between(4, 8), tuple(random.sample(names, few)))
        case FaultKind.STALL:
            return Fault(at, fault_kind, random.between(6, 14), tuple(random.sample(names, few)))
        case FaultKind.FREEZE:
            return Fault(at, fault_kind, random.between(0.5, 3))
        case FaultKind.CLOCK:
            return Fault(at, fault_kind, random.between(1, 2), (), random.choose((-3_600.0, 86_400.0, -10.0, 90.0)))
        case FaultKind.FILES:
            return Fault(at, fault_kind, random.between(1, 3))
        case FaultKind.KILL | FaultKind.DRAIN:
            return Fault(at, fault_kind, random.between(1, 3))  # until it is started again
        case _:
            return Fault(at, fault_kind, 0)
