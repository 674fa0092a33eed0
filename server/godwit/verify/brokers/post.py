"""A publisher over HTTP: one request at a time on a subject, so that the order of numbers is the order of messages."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp

from ..judge.context import CheckContext
from ..plan import Plan
from ..timing import Clock
from .broker import SubjectPublisher


class PostPublisher(SubjectPublisher):
    """A subclass for a broker defines the request, and whether an answer is an acknowledgement."""

    def __init__(self, plan: Plan, context: CheckContext, clock: Clock) -> None:
        super().__init__(plan, context, clock)
        self._turns = {subject: asyncio.Lock() for subject in plan.styles}
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        self._session = aiohttp.ClientSession()

    async def send(self, subject: str, content: bytes) -> bool:
        assert self._session is not None, "it is open"
        async with self._turns[subject]:
            url, body = self.request(subject, content)
            async with self._session.post(url, **body) as answer:
                return await self.is_acknowledged(answer)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def request(self, subject: str, content: bytes) -> tuple[str, dict[str, Any]]:
        """The URL, and the body in aiohttp's form."""
        raise AssertionError(f"{type(self).__name__} posts nothing: {subject}, {len(content)} bytes")

    async def is_acknowledged(self, answer: aiohttp.ClientResponse) -> bool:
        """Whether the status is a success; a subclass may check more."""
        return answer.status in (200, 201, 202)


def channel_of(subject: str) -> str:
    """A channel name for a subject, for brokers whose channels have no segments."""
    return subject.strip("/").replace("/", "_")
