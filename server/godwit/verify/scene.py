"""One run: everybody is built from the plan, harmed as it says, brought to the end, and judged.

Start reading here. Owns the order of things: the node, lanes, subscribers joined, publishing under harm, calm, the end. What is right
and wrong is the judge's.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import NodeFailed
from .brokers.broker import Broker, Publishing, Seat, Subscriber
from .harming import Harming
from .judge.content import Contents
from .judge.court import Court
from .judge.finding import Breach, Finding, Findings, Promise
from .judge.ledger import Ledger
from .judge.merging import Merging
from .judge.witness import Witness
from .node import Node, stated_growth_bytes
from .plan import CALM_S, Harm, Kind, Plan
from .proxy import Proxy
from .timing import Clock, start_clock
from .trace import Trace

SAMPLE_S = 0.5
SAMPLES_MAX = 4_000  # past it every second one goes
JOIN_S_MAX = 30.0
ANSWERS_S_MAX = 30.0
END_S_MAX = 45.0
QUIET_S_MAX = 20.0  # nobody moves any more: whoever is short stays short


@dataclass(frozen=True, slots=True)
class Sample:
    """The run at one moment."""

    at_ms: int
    published: int
    delivered: int
    connected: int
    memory_bytes: int
    gaps: int


@dataclass(slots=True)
class Scene:
    """Everything of a run; what is left when it has ended is what the reports are made of."""

    plan: Plan
    clock: Clock
    court: Court
    proxy: Proxy
    broker: Broker
    subscribers: list[Subscriber] = field(default_factory=list)
    publishers: list[Publishing] = field(default_factory=list)
    harming: Harming | None = None
    samples: list[Sample] = field(default_factory=list)
    base_bytes: int = 0
    phase: str = "starting"
    ended_ms: int = 0
    published_until_ms: int = 0

    @property
    def node(self) -> Node | None:
        """What was started here and can be measured."""
        return self.broker.node

    @property
    def is_restarting(self) -> bool:
        """The node was killed, or asked to leave, and is not back yet."""
        return self.harming is not None and self.harming.now in (Harm.KILL, Harm.DRAIN)

    @property
    def findings(self) -> Findings:
        return self.court.findings

    @property
    def limit_bytes(self) -> int:
        """What the node started here may use."""
        return self.base_bytes + stated_growth_bytes()

    @property
    def peak_bytes(self) -> int:
        return max((sample.memory_bytes for sample in self.samples), default=0)

    def sample(self) -> Sample:
        witnesses = [subscriber.witness for subscriber in self.subscribers]
        up = sum(bool(each.trace.ups) and each.trace.ups[-1][1] is None for each in self.subscribers)
        return Sample(
            self.clock(),
            self.court.ledger.acknowledged_count,
            sum(witness.counts.messages for witness in witnesses),
            up,
            self.node.memory_bytes() if self.node is not None else 0,
            sum(witness.counts.gaps for witness in witnesses),
        )


Watch = Callable[[Scene], None]


async def run_scene(plan: Plan, broker: Broker, watch: Watch) -> Scene:
    """A whole run against a broker, which is started and stopped."""
    with tempfile.TemporaryDirectory(prefix="godwit-verify-") as name:
        directory = Path(name)
        proxy = Proxy(None)
        try:
            await broker.start(directory)
            proxy.target = broker.address
            scene = _build(plan, proxy, broker)
            await _play(scene, directory, watch)
        finally:
            await proxy.close()
            await broker.stop()
    return scene


def _build(plan: Plan, proxy: Proxy, broker: Broker) -> Scene:
    ledger, rules = Ledger(Contents(plan.seed, plan.scale.size), plan.styles), broker.rules(plan)
    court = Court(ledger, Merging(ledger, keeps_journal=rules.keeps_journal), Findings(), rules)
    scene = Scene(plan, start_clock(), court, proxy, broker)
    scene.base_bytes = broker.node.memory_bytes() if broker.node is not None else 0
    return scene


async def _play(scene: Scene, directory: Path, watch: Watch) -> None:
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(_watch(scene, watch))
        scene.phase = "joining"
        running = [group.create_task(each.run()) for each in await _subscribers(scene, directory)]
        if scene.broker.needs_everybody_first:
            await _everybody(scene)
        lanes = [await scene.proxy.lane(f"publisher-{mine.number}") for mine in scene.plan.publishers]
        ports = [lane.port for lane in lanes]
        scene.publishers = scene.broker.publishers(scene.plan, ports, scene.court, scene.clock)
        scene.phase = "publishing"
        publishing = [group.create_task(publisher.run()) for publisher in scene.publishers]
        harming = group.create_task(_harm(scene))
        await asyncio.sleep(max(0.0, scene.plan.scale.seconds - scene.clock() / 1000))
        await harming  # a node that is on its way back has to come back
        await _end(scene, publishing)
        watching.cancel()
        for task in running:
            task.cancel()


async def _everybody(scene: Scene) -> None:
    """Until every subscriber is subscribed."""
    async with asyncio.timeout(JOIN_S_MAX):
        while not all(each.trace.ups for each in scene.subscribers):  # noqa: ASYNC110 - of any kind, in any process
            await asyncio.sleep(0.05)


async def _subscribers(scene: Scene, directory: Path) -> list[Subscriber]:
    for mine in scene.plan.subscribers:
        lane = await scene.proxy.lane(mine.name)
        witness = Witness(
            mine.name,
            mine.selector,
            scene.court,
            is_client=mine.kind in (Kind.PYTHON, Kind.SAVED, Kind.JAVASCRIPT),
            conflate_ms=mine.conflate_ms or 0,
            goes_on_from_oldest=mine.on_gap == "oldest",
        )
        seat = Seat(mine, lane.port, witness, Trace(), scene.clock, directory)
        scene.subscribers.append(scene.broker.subscriber(seat))
    return scene.subscribers


async def _harm(scene: Scene) -> None:
    by_name = {each.mine.name: each for each in scene.subscribers}

    def stalled(name: str, begin: int, end: int) -> None:
        by_name[name].trace.stalls.append((begin, end))

    scene.harming = Harming(
        scene.plan.faults,
        scene.proxy,
        scene.node,
        scene.court,
        scene.clock,
        by_name,
        stalled,
        scene.plan.scale.seconds - CALM_S,
    )
    try:
        await scene.harming.run()
    except NodeFailed as failed:
        _find(scene, Promise.ALIVE, "node", f"it was to start again and did not: {failed}")


async def _watch(scene: Scene, watch: Watch) -> None:
    has_node = scene.node is not None
    while True:
        scene.samples.append(scene.sample())
        if len(scene.samples) > SAMPLES_MAX:
            del scene.samples[1::2]
        if scene.node is not None and has_node and not scene.node.is_running and not scene.is_restarting:
            has_node = False
            _find(scene, Promise.ALIVE, "node", f"it ended by itself: {scene.node.last_words()}")
        _judge_merges(scene, is_end=False)
        watch(scene)
        await asyncio.sleep(SAMPLE_S)


async def _end(scene: Scene, publishing: list[asyncio.Task[None]]) -> None:
    """No more harm, no more publishes: the last answers, then everybody comes to the head, or is found short of it."""
    scene.phase = "waiting for the last answers"
    scene.published_until_ms = scene.clock()
    for publisher in scene.publishers:
        publisher.stop.set()
    await asyncio.wait(publishing, timeout=ANSWERS_S_MAX)
    late = [task for task in publishing if not task.done()]
    for task in late:
        task.cancel()
    if late:
        _find(scene, Promise.ALIVE, "publishers", f"{len(late)} publishers were not answered in {ANSWERS_S_MAX:.0f} s")
    scene.phase = "coming to the end"
    heads = scene.court.ledger.heads()
    for subscriber in scene.subscribers:
        subscriber.go_at_full_speed()
    await _come_to_the_end(scene)
    scene.ended_ms = scene.clock()
    for subscriber in scene.subscribers:
        subscriber.witness.end(scene.clock(), heads)
    _judge_merges(scene, is_end=True)
    for subject, breach in scene.court.ledger.audit():
        _find(scene, breach.promise, "ledger", breach.sentence, subject)
    if scene.node is not None and scene.peak_bytes > scene.limit_bytes:
        peak, limit = scene.peak_bytes / 1e6, scene.limit_bytes / 1e6
        _find(scene, Promise.MEMORY, "node", f"the node used {peak:.0f} MB; {limit:.0f} MB were stated")


async def _come_to_the_end(scene: Scene) -> None:
    """Until everybody stands at every head, or nobody has moved for a while."""
    heads = scene.court.ledger.heads()
    moved = asyncio.Event()
    for subscriber in scene.subscribers:
        subscriber.witness.moved = moved.set
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_S_MAX):
            for subscriber in scene.subscribers:
                while not subscriber.witness.is_at(heads):
                    moved.clear()
                    async with asyncio.timeout(QUIET_S_MAX):
                        await moved.wait()


def _judge_merges(scene: Scene, is_end: bool) -> None:
    for breach, claim, who, at_ms in scene.court.merging.review(is_end):
        if breach.promise in scene.court.rules.promises:
            scene.findings.add(Finding(breach.promise, breach.sentence, who, claim.subject, at_ms))


def _find(scene: Scene, promise: Promise, who: str, sentence: str, subject: str = "") -> None:
    breach = Breach(promise, sentence)
    if breach.promise in scene.court.rules.promises:
        scene.findings.add(Finding(promise, sentence, who, subject, scene.clock()))
