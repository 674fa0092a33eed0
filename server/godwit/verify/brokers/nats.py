"""nats-server with JetStream: streams in memory, and an ordered consumer for each subscriber.

NATS offers ordered consumers for every message, once, in order. A stalled reader is a slow consumer, which the server
disconnects and the library restarts. It has sequences but does not report gaps: messages that its stream dropped are a
violation. Needs the Debian package nats-server and Python's nats-py.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import shutil
from pathlib import Path
from typing import Any

from ..judge.context import CheckContext
from ..judge.finding import Guarantee
from ..plan import Kind, Plan
from ..reading import Reading
from ..timing import Clock
from .broker import BrokerMissing, Numbered, Program, Publishing, SubjectPublisher, Subscriber, SubscriberSetup

GUARANTEES = frozenset({Guarantee.NO_LOSS, Guarantee.NO_REPEAT, Guarantee.ORDER, Guarantee.CONTENT, Guarantee.ALIVE})
NOTES = ["nats: gaps, merged values and restarts are not judged; publishers connect directly and do not retry"]
OPTIONS = {"max_reconnect_attempts": -1, "reconnect_time_wait": 0.2, "ping_interval": 2, "max_outstanding_pings": 2}


class NatsBroker(Program):
    """One server process."""

    name = "nats-server JetStream"
    kinds = frozenset({Kind.SUBJECT, Kind.PATTERN})

    def __init__(self) -> None:
        super().__init__(NOTES, GUARANTEES)
        try:
            self._nats: Any = importlib.import_module("nats")
        except ModuleNotFoundError:
            raise BrokerMissing("the Python package nats-py is not installed") from None
        if shutil.which("nats-server") is None:
            raise BrokerMissing("nats-server is not on the PATH")

    async def start(self, directory: Path) -> None:
        await self._launch("nats-server", "-js", "-sd", str(directory), "-a", "127.0.0.1", "-p", str(self.address[1]))
        client = await self._nats.connect(f"nats://127.0.0.1:{self.address[1]}")
        await client.jetstream().add_stream(name="verify", subjects=["verify.>"], storage="memory", max_msgs=1_000_000)
        await client.close()

    def subscriber(self, setup: SubscriberSetup) -> Subscriber:
        return NatsSubscriber(setup, self._nats)

    def publishers(self, plan: Plan, ports: list[int], context: CheckContext, clock: Clock) -> list[Publishing]:
        return [NatsPublisher(plan, context, clock, self.address, self._nats)]


class NatsSubscriber(Reading[asyncio.Event]):
    """An ordered consumer. The library reconnects and creates a new consumer at the position of the last one."""

    def __init__(self, setup: SubscriberSetup, nats: Any) -> None:
        super().__init__(asyncio.Event())
        self.mine, self.checker, self.trace = setup.mine, setup.checker, setup.trace
        self._setup, self._nats = setup, nats
        self._numbered = Numbered(setup)

    async def run(self) -> None:
        async def lost(*_: object) -> None:
            self._numbered.lost("broken")

        async def back(*_: object) -> None:
            self._numbered.joined()

        async def failed(*_: object) -> None:
            """The library reports the same error more than once; `lost` counts the first."""

        async def took(message: Any) -> None:
            await self._may_read.wait()
            self._numbered.take(message.data)

        client = await self._nats.connect(
            f"nats://127.0.0.1:{self._setup.port}",
            disconnected_cb=lost,
            reconnected_cb=back,
            error_cb=failed,
            **OPTIONS,
        )
        try:
            await client.jetstream().subscribe(subject_as_nats(self.mine.selector), ordered_consumer=True, cb=took)
            self._numbered.joined()
            await asyncio.Event().wait()
        finally:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(2):
                    await client.close()


class NatsPublisher(SubjectPublisher):
    """Publishes into the stream, and waits for each acknowledgement."""

    def __init__(self, plan: Plan, context: CheckContext, clock: Clock, address: tuple[str, int], nats: Any) -> None:
        super().__init__(plan, context, clock)
        self._address, self._nats = address, nats
        self._client: Any = None
        self._stream: Any = None

    async def open(self) -> None:
        self._client = await self._nats.connect(f"nats://{self._address[0]}:{self._address[1]}")
        self._stream = self._client.jetstream()

    async def send(self, subject: str, content: bytes) -> bool:
        try:
            await self._stream.publish(subject_as_nats(subject), content, timeout=10)
        except self._nats.errors.Error:
            return False
        return True

    async def close(self) -> None:
        await self._client.close()


def subject_as_nats(selector: str) -> str:
    """The NATS subject of a subject or pattern."""
    return ".".join(">" if segment == "**" else segment for segment in selector.strip("/").split("/"))
