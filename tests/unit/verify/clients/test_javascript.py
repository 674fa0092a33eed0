"""A subscriber through the JavaScript client: it can be made to take nothing more, and what its client says of itself is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from godwit import testing
from godwit.client import Client
from godwit.model import Outcome, Position
from godwit.verify.clients.javascript import JavascriptSubscriber, find_client
from godwit.verify.judge.checker import Checker
from godwit.verify.plan import Kind, SubscriberPlan
from godwit.verify.timing import start_clock
from godwit.verify.trace import Trace
from tests.unit.verify.judge.model import SUBJECT, context

pytestmark = pytest.mark.skipif(find_client() is None, reason="there is no Node here")
BEYOND_THE_QUEUE = 300  # of which the program's client holds 200


class Heard(Checker):
    """A checker whom a test can wait for."""

    def __init__(self) -> None:
        super().__init__("javascript-1", SUBJECT, context(), is_client=True)
        self.news = asyncio.Event()
        self.moved = self.news.set
        self.words: list[str] = []

    def said(self, at_ms: int, words: str) -> None:
        super().said(at_ms, words)
        self.words.append(words)
        self.news.set()

    def joined(self, at_ms: int, at: Position | None, outcome: Outcome | None, count: int = 0) -> None:
        super().joined(at_ms, at, outcome, count)
        self.news.set()

    async def hears(self, words: str) -> None:
        await self._until(lambda: any(words in said for said in self.words))

    async def joins(self) -> None:
        await self._until(lambda: self.counts.joins > 0)

    async def takes(self, count: int) -> None:
        await self._until(lambda: self.counts.messages >= count)

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.news.clear()
            await self.news.wait()


def subscriber(url: str, checker: Checker) -> JavascriptSubscriber:
    plan = SubscriberPlan("javascript-1", Kind.JAVASCRIPT, SUBJECT, "json")
    return JavascriptSubscriber(plan, url, checker, Trace(), start_clock())


@asynccontextmanager
async def running(subscriber: JavascriptSubscriber) -> AsyncIterator[None]:
    async with asyncio.timeout(30):
        task = asyncio.create_task(subscriber.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_a_stalled_program_takes_nothing_more_until_it_may_go_on() -> None:
    checker = Heard()
    async with testing.node() as node, Client(node.url) as client:
        stalled = subscriber(node.url, checker)
        async with running(stalled):
            await client.publish(SUBJECT, 0)
            await checker.takes(1)
            stalled.stall(True)
            await checker.hears("is stalled")
            for number in range(BEYOND_THE_QUEUE):
                await client.publish(SUBJECT, number)
            assert checker.counts.messages <= 2, "the one in hand, and the one that it waited for"
            stalled.go_at_full_speed()
            await checker.takes(1 + BEYOND_THE_QUEUE)


async def test_one_that_is_stalled_before_it_begins_is_told_so_when_it_does() -> None:
    checker = Heard()
    async with testing.node() as node:
        stalled = subscriber(node.url, checker)
        stalled.stall(True)
        async with running(stalled):
            await checker.hears("is stalled")


async def test_what_the_client_says_of_itself_is_heard_and_stands_in_the_history_of_a_finding() -> None:
    checker = Heard()
    async with testing.node() as node:
        heard = subscriber(node.url, checker)
        async with running(heard):
            await checker.hears("godwit: connected (websocket)")
            await checker.joins()  # a history begins with the reply: what was said before it proves nothing
            heard.stall(True)
            await checker.hears("is stalled")
        checker.end(1_000, {SUBJECT: Position(7, 1)})
    (finding,) = checker.context.findings.kept
    assert any("client log: is stalled" in line for line in finding.history)
