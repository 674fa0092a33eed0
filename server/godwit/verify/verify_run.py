"""One run: creates the clients of the plan, injects its faults, waits for the end, and judges.

Start reading here. Owns the order: the node, lanes, joined subscribers, publishing with faults, a time without faults,
the end. `judge` decides what is right.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import NodeFailed
from .brokers.broker import Broker, Publishing, Subscriber, SubscriberSetup
from .fault_injection import FaultInjection
from .judge.checker import Checker
from .judge.content import Contents
from .judge.context import CheckContext
from .judge.expected_history import ExpectedHistory
from .judge.finding import Finding, Findings, Guarantee, Violation
from .judge.merging import Merging
from .node import Node, stated_growth_bytes
from .plan import CALM_S, FaultKind, Kind, Plan
from .proxy import Proxy
from .timing import Clock, start_clock
from .trace import Trace

SAMPLE_S = 0.5
SAMPLES_MAX = 4_000  # past it every second one goes
JOIN_S_MAX = 30.0
ANSWERS_S_MAX = 30.0
END_S_MAX = 45.0
QUIET_S_MAX = 20.0  # no subscriber advances any more: missing messages stay missing


@dataclass(frozen=True, slots=True)
class Sample:
    """The state of the run at one time."""

    at_ms: int
    published: int
    delivered: int
    connected: int
    memory_bytes: int
    gaps: int


@dataclass(slots=True)
class VerifyRun:
    """The objects of a run; the reports are made from them."""

    plan: Plan
    clock: Clock
    context: CheckContext
    proxy: Proxy
    broker: Broker
    subscribers: list[Subscriber] = field(default_factory=list)
    publishers: list[Publishing] = field(default_factory=list)
    injection: FaultInjection | None = None
    samples: list[Sample] = field(default_factory=list)
    base_bytes: int = 0
    phase: str = "starting"
    ended_ms: int = 0
    published_until_ms: int = 0

    @property
    def node(self) -> Node | None:
        """The node that was started here and can be measured."""
        return self.broker.node

    @property
    def is_restarting(self) -> bool:
        """Whether the node was killed, or asked to stop, and is not running again yet."""
        return self.injection is not None and self.injection.now in (FaultKind.KILL, FaultKind.DRAIN)

    @property
    def findings(self) -> Findings:
        return self.context.findings

    @property
    def limit_bytes(self) -> int:
        """The memory that the node may use."""
        return self.base_bytes + stated_growth_bytes()

    @property
    def peak_bytes(self) -> int:
        return max((sample.memory_bytes for sample in self.samples), default=0)

    def sample(self) -> Sample:
        checkers = [subscriber.checker for subscriber in self.subscribers]
        up = sum(bool(each.trace.ups) and each.trace.ups[-1][1] is None for each in self.subscribers)
        return Sample(
            self.clock(),
            self.context.expected.acknowledged_count,
            sum(checker.counts.messages for checker in checkers),
            up,
            self.node.memory_bytes() if self.node is not None else 0,
            sum(checker.counts.gaps for checker in checkers),
        )


Watch = Callable[[VerifyRun], None]


async def run_plan(plan: Plan, broker: Broker, watch: Watch) -> VerifyRun:
    """Run a plan against a broker, which is started and stopped."""
    with tempfile.TemporaryDirectory(prefix="godwit-verify-") as name:
        directory = Path(name)
        proxy = Proxy(None)
        try:
            await broker.start(directory)
            proxy.target = broker.address
            run = _build(plan, proxy, broker)
            await _play(run, directory, watch)
        finally:
            await proxy.close()
            await broker.stop()
    return run


def _build(plan: Plan, proxy: Proxy, broker: Broker) -> VerifyRun:
    expected, rules = ExpectedHistory(Contents(plan.seed, plan.scale.size), plan.styles), broker.rules(plan)
    context = CheckContext(expected, Merging(expected, keeps_journal=rules.keeps_journal), Findings(), rules)
    run = VerifyRun(plan, start_clock(), context, proxy, broker)
    run.base_bytes = broker.node.memory_bytes() if broker.node is not None else 0
    return run


async def _play(run: VerifyRun, directory: Path, watch: Watch) -> None:
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(_watch(run, watch))
        run.phase = "joining"
        running = [group.create_task(each.run()) for each in await _subscribers(run, directory)]
        if run.broker.needs_everybody_first:
            await _everybody(run)
        lanes = [await run.proxy.lane(f"publisher-{mine.number}") for mine in run.plan.publishers]
        ports = [lane.port for lane in lanes]
        run.publishers = run.broker.publishers(run.plan, ports, run.context, run.clock)
        run.phase = "publishing"
        publishing = [group.create_task(publisher.run()) for publisher in run.publishers]
        injection = group.create_task(_inject(run))
        await asyncio.sleep(max(0.0, run.plan.scale.seconds - run.clock() / 1000))
        await injection  # a node that restarts has to become ready
        await _end(run, publishing)
        watching.cancel()
        for task in running:
            task.cancel()


async def _everybody(run: VerifyRun) -> None:
    """Wait until every subscriber is subscribed."""
    async with asyncio.timeout(JOIN_S_MAX):
        while not all(each.trace.ups for each in run.subscribers):  # noqa: ASYNC110 - of any kind, in any process
            await asyncio.sleep(0.05)


async def _subscribers(run: VerifyRun, directory: Path) -> list[Subscriber]:
    for mine in run.plan.subscribers:
        lane = await run.proxy.lane(mine.name)
        checker = Checker(
            mine.name,
            mine.selector,
            run.context,
            is_client=mine.kind in (Kind.PYTHON, Kind.SAVED, Kind.JAVASCRIPT),
            conflate_ms=mine.conflate_ms or 0,
            goes_on_from_oldest=mine.on_gap == "oldest",
        )
        setup = SubscriberSetup(mine, lane.port, checker, Trace(), run.clock, directory)
        run.subscribers.append(run.broker.subscriber(setup))
    return run.subscribers


async def _inject(run: VerifyRun) -> None:
    by_name = {each.mine.name: each for each in run.subscribers}

    def stalled(name: str, begin: int, end: int) -> None:
        by_name[name].trace.stalls.append((begin, end))

    run.injection = FaultInjection(
        run.plan.faults,
        run.proxy,
        run.node,
        run.context,
        run.clock,
        by_name,
        stalled,
        run.plan.scale.seconds - CALM_S,
    )
    try:
        await run.injection.run()
    except NodeFailed as failed:
        _find(run, Guarantee.ALIVE, "node", f"it did not restart: {failed}")


async def _watch(run: VerifyRun, watch: Watch) -> None:
    has_node = run.node is not None
    while True:
        run.samples.append(run.sample())
        if len(run.samples) > SAMPLES_MAX:
            del run.samples[1::2]
        if run.node is not None and has_node and not run.node.is_running and not run.is_restarting:
            has_node = False
            _find(run, Guarantee.ALIVE, "node", f"it exited unexpectedly: {run.node.last_words()}")
        _judge_merges(run, is_end=False)
        watch(run)
        await asyncio.sleep(SAMPLE_S)


async def _end(run: VerifyRun, publishing: list[asyncio.Task[None]]) -> None:
    """No more faults and publishes: wait for the last answers, then until every subscriber has reached the end or is found
    short of it.
    """
    run.phase = "waiting for the last answers"
    run.published_until_ms = run.clock()
    for publisher in run.publishers:
        publisher.stop.set()
    await asyncio.wait(publishing, timeout=ANSWERS_S_MAX)
    late = [task for task in publishing if not task.done()]
    for task in late:
        task.cancel()
    if late:
        _find(
            run,
            Guarantee.ALIVE,
            "publishers",
            f"{len(late)} publishers received no answer within {ANSWERS_S_MAX:.0f} s",
        )
    run.phase = "waiting for subscribers to reach the end"
    heads = run.context.expected.heads()
    for subscriber in run.subscribers:
        subscriber.go_at_full_speed()
    await _come_to_the_end(run)
    run.ended_ms = run.clock()
    for subscriber in run.subscribers:
        subscriber.checker.end(run.clock(), heads)
    _judge_merges(run, is_end=True)
    for subject, violation in run.context.expected.audit():
        _find(run, violation.guarantee, "publishers", violation.sentence, subject)
    if run.node is not None and run.peak_bytes > run.limit_bytes:
        peak, limit = run.peak_bytes / 1e6, run.limit_bytes / 1e6
        _find(run, Guarantee.MEMORY, "node", f"the node used {peak:.0f} MB; the sum of its limits is {limit:.0f} MB")


async def _come_to_the_end(run: VerifyRun) -> None:
    """Wait until every subscriber has reached every head, or none has advanced for a while."""
    heads = run.context.expected.heads()
    moved = asyncio.Event()
    for subscriber in run.subscribers:
        subscriber.checker.moved = moved.set
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_S_MAX):
            for subscriber in run.subscribers:
                while not subscriber.checker.is_at(heads):
                    moved.clear()
                    async with asyncio.timeout(QUIET_S_MAX):
                        await moved.wait()


def _judge_merges(run: VerifyRun, is_end: bool) -> None:
    for violation, claim, who, at_ms in run.context.merging.review(is_end):
        if violation.guarantee in run.context.rules.guarantees:
            run.findings.add(Finding(violation.guarantee, violation.sentence, who, claim.subject, at_ms))


def _find(run: VerifyRun, guarantee: Guarantee, who: str, sentence: str, subject: str = "") -> None:
    violation = Violation(guarantee, sentence)
    if violation.guarantee in run.context.rules.guarantees:
        run.findings.add(Finding(guarantee, sentence, who, subject, run.clock()))
