"""One publisher: publishes at the plan's pace with the Python client, and records every outcome in the expected history.

Half of the publishers repeat unanswered publishes with a key. The others do not, so their unanswered publishes may exist
or not. Sometimes a publisher uses an old key with another content, which must be refused.
"""

from __future__ import annotations

import asyncio

from ...client import AnswerLost, Client, ClientClosed, CommandRefused, JsonText, Settings
from ...model import Position
from ..judge.content import Identity, Style
from ..judge.context import CheckContext
from ..judge.finding import Finding
from ..plan import Plan, PublisherPlan
from ..timing import Clock

CONFLICT_EACH = 211  # publishes
QUICK = Settings(reconnect_first_ms=20, reconnect_max_ms=200, answer_timeout_ms=2_000, ping_interval_ms=2_000)


class Publisher:
    """Run it until `stop` is set; then it waits for its last answers."""

    def __init__(self, plan: Plan, mine: PublisherPlan, url: str, context: CheckContext, clock: Clock) -> None:
        self._plan, self._mine, self._url, self._context, self._clock = plan, mine, url, context, clock
        self.stop = asyncio.Event()
        self._room = asyncio.Semaphore(mine.in_flight)
        self._last_key: str | None = None
        self.number = 0

    async def run(self) -> None:
        interval = self._plan.scale.publishers / self._plan.scale.rate
        loop = asyncio.get_running_loop()
        due = loop.time() + interval * self._mine.number / self._plan.scale.publishers
        async with (
            Client(self._url, encoding=self._mine.encoding, settings=QUICK) as client,
            asyncio.TaskGroup() as group,
        ):
            while not await self._stops_before(due):
                await self._room.acquire()
                if self.stop.is_set():
                    self._room.release()
                    break
                due = max(due + interval, loop.time() - 1.0)  # after a pause it catches up with one second at most
                group.create_task(self._publish(client))

    async def _stops_before(self, due: float) -> bool:
        try:
            async with asyncio.timeout_at(due):
                await self.stop.wait()
            return True
        except TimeoutError:
            return False

    async def _publish(self, client: Client) -> None:
        self.number += 1
        identity = Identity(self._mine.number, self.number)
        subject = self._plan.subject_of(*identity)
        expected = self._context.expected
        content = expected.send(identity, subject, self._clock())
        key = self._key(identity)
        try:
            style = expected.styles[subject]
            merge = True if style is Style.OBJECT else None
            published = await client.publish(
                subject, _as_said(content, style), key=key, merge=merge, once=self._mine.is_keyed
            )
        except CommandRefused:
            expected.refuse(identity)
        except (AnswerLost, ClientClosed):
            pass  # it may exist, or not
        else:
            self._last_key = key
            self._acknowledged(identity, subject, published.position, published.is_duplicate)
        finally:
            self._room.release()

    def _key(self, identity: Identity) -> str | None:
        if not self._mine.is_keyed:
            return None
        if self._last_key is not None and identity.number % CONFLICT_EACH == 0:
            return self._last_key
        return f"{self._plan.root[1:].replace('/', '.')}.{self._plan.seed:x}.{identity.publisher}.{identity.number:08}"

    def _acknowledged(self, identity: Identity, subject: str, at: Position | None, is_duplicate: bool) -> None:
        assert at is not None, "guaranteed messages have positions"
        violation = self._context.expected.acknowledge(identity, at, is_duplicate)
        if violation is not None and violation.guarantee in self._context.rules.guarantees:
            who = f"publisher-{identity.publisher}"
            history = [f"{self._clock() / 1000:9.3f} s  {identity} was acknowledged at {at}"]
            self._context.findings.add(
                Finding(violation.guarantee, violation.sentence, who, subject, self._clock(), history)
            )


def _as_said(content: bytes, style: Style) -> object:
    """The argument for the client that makes it send exactly these bytes."""
    match style:
        case Style.OBJECT | Style.ARRAY:
            return JsonText(content.decode())
        case Style.TEXT:
            return content.decode()
        case Style.BYTES:
            return content
