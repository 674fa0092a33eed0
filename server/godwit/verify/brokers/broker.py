"""The interface of a broker in a run: start and stop, its guarantees, and its publishers and subscribers.

A broker without positions is judged by the publishers' numbers: each subject has one publisher, so the n-th publish of a
subject has the position 1.n. Guarantees that a broker does not give are not judged; its notes give the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ...children import follow_parent
from ...errors import GodwitError
from ...model import Message, Position
from ...subject import is_pattern
from ..judge.checker import Checker
from ..judge.content import Identity, read_identity
from ..judge.context import CheckContext, Rules
from ..judge.expected_history import ExpectedHistory
from ..judge.finding import Guarantee
from ..node import Node
from ..plan import Kind, Plan, SubscriberPlan
from ..timing import Clock
from ..trace import Trace

FIRST_EPOCH = 1


class BrokerMissing(GodwitError):
    """The broker, or a library for it, is not installed on this machine."""


@dataclass(frozen=True, slots=True)
class SubscriberSetup:
    """The parameters of one subscriber of a run."""

    mine: SubscriberPlan
    port: int
    checker: Checker
    trace: Trace
    clock: Clock
    directory: Path


class Subscriber(Protocol):
    """The interface of every kind of subscriber."""

    mine: SubscriberPlan
    checker: Checker
    trace: Trace

    def stall(self, is_stalled: bool) -> None: ...
    def go_at_full_speed(self) -> None: ...
    async def run(self) -> None: ...


class Publishing(Protocol):
    """A publisher: it runs until `stop` is set, then waits for its last acknowledgements."""

    stop: asyncio.Event

    async def run(self) -> None: ...


class Broker(Protocol):
    """A driver."""

    name: str
    kinds: frozenset[Kind]
    notes: list[str]
    node: Node | None
    """The process that can be killed, frozen and measured; None if the broker runs elsewhere."""
    address: tuple[str, int]
    needs_everybody_first: bool
    """Publishing starts after every subscriber has joined, because a later one is not owed earlier messages."""

    async def start(self, directory: Path) -> None: ...
    async def stop(self) -> None: ...
    def rules(self, plan: Plan) -> Rules: ...
    def subscriber(self, setup: SubscriberSetup) -> Subscriber: ...
    def publishers(self, plan: Plan, ports: list[int], context: CheckContext, clock: Clock) -> list[Publishing]: ...


class Program:
    """The common part of the drivers of programs: one process on a free port of loopback, which ends with this one."""

    needs_everybody_first = True
    node: Node | None = None

    def __init__(self, notes: list[str], guarantees: frozenset[Guarantee]) -> None:
        self.notes = list(notes)
        self.address = ("127.0.0.1", find_port())
        self._guarantees = guarantees
        self._process: asyncio.subprocess.Process | None = None

    async def _launch(self, *command: str) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *command, stderr=asyncio.subprocess.DEVNULL, preexec_fn=follow_parent()
        )
        await wait_for_port(self.address, self._process)

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    def rules(self, plan: Plan) -> Rules:
        return Rules(guarantees=self._guarantees)


class Numbered:
    """Converts contents of a broker without positions to messages with positions, for one checker."""

    def __init__(self, setup: SubscriberSetup) -> None:
        self._setup = setup
        self.has_joined = asyncio.Event()

    def joined(self) -> None:
        """The subscription is confirmed; messages published from now on are owed to it."""
        setup = self._setup
        setup.trace.up(setup.clock())
        if self.has_joined.is_set():
            setup.checker.resumed(setup.clock())
            return
        setup.checker.asked(setup.clock())
        if not is_pattern(setup.mine.selector):
            setup.checker.joined(setup.clock(), Position(FIRST_EPOCH, 0), None)
            setup.checker.state(setup.mine.selector).reached = Position(FIRST_EPOCH, 0)
        self.has_joined.set()

    def lost(self, reason: str) -> None:
        self._setup.trace.down(self._setup.clock())
        self._setup.checker.lost(self._setup.clock(), reason)

    def take(self, content: bytes) -> None:
        """Process a received message; its content identifies it."""
        setup, expected = self._setup, self._setup.checker.context.expected
        identity = read_identity(content)
        subject = subject_of(expected, identity)
        number = identity.number if identity is not None else 0
        setup.checker.message(setup.clock(), Message(subject, content, position=Position(FIRST_EPOCH, number)))


def subject_of(expected: ExpectedHistory, identity: Identity | None) -> str:
    """The subject of publisher n, which no other publisher uses."""
    subjects = list(expected.styles)
    return subjects[identity.publisher - 1] if identity and 1 <= identity.publisher <= len(subjects) else "/unknown"


class SubjectPublisher:
    """Publishes at the plan's pace, with consecutive numbers on each subject; `send` returns when the broker has acknowledged."""

    def __init__(self, plan: Plan, context: CheckContext, clock: Clock) -> None:
        self.stop = asyncio.Event()
        self._plan, self._context, self._clock = plan, context, clock
        self._numbers = dict.fromkeys(plan.styles, 0)
        self._publishers = {subject: place for place, subject in enumerate(plan.styles, 1)}
        self._room = asyncio.Semaphore(64)

    async def run(self) -> None:
        interval, count = 1 / self._plan.scale.rate, 0
        loop = asyncio.get_running_loop()
        due = loop.time()
        async with asyncio.TaskGroup() as group:
            await self.open()
            while not self.stop.is_set():
                await self._room.acquire()
                count += 1
                group.create_task(self._publish(self._plan.subject_of(1, count)))
                due = max(due + interval, loop.time() - 1.0)
                await asyncio.sleep(max(0.0, due - loop.time()))
        await self.close()

    async def _publish(self, subject: str) -> None:
        self._numbers[subject] += 1
        identity = Identity(self._publishers[subject], self._numbers[subject])
        content = self._context.expected.send(identity, subject, self._clock())
        try:
            if await self.send(subject, content):
                self._context.expected.acknowledge(identity, Position(FIRST_EPOCH, identity.number))
        finally:
            self._room.release()

    async def open(self) -> None:
        """Connect."""

    async def send(self, subject: str, content: bytes) -> bool:
        """Publish; returns whether it was acknowledged. Calls begin in the order of their numbers."""
        raise AssertionError(f"{type(self).__name__} publishes nothing: {subject}, {len(content)} bytes")

    async def close(self) -> None:
        """Close the connection."""


def find_port() -> int:
    """A free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def wait_for_port(address: tuple[str, int], process: asyncio.subprocess.Process) -> None:
    """Wait until the port accepts. Raises BrokerMissing if the process ends before."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(*address)
                writer.close()
                return
            if process.returncode is not None:
                raise BrokerMissing(f"the broker ended with {process.returncode}")
            await asyncio.sleep(0.02)
