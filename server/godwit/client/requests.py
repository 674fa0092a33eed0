"""Requests: publishes that name a private subject of this client for the reply.

One pattern subscription receives all replies of a client. It requests the last kept message of each subject, so that a
reply is not missed if the connection is lost before the first resume token.
"""

from __future__ import annotations

import asyncio
import secrets

from ..model import Message
from .errors import ClientClosed
from .subscription import Subscription


class Requests:
    """The requests that wait for a reply."""

    def __init__(self) -> None:
        self._prefix = f"/reply/{secrets.token_hex(16)}"
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._count = 0

    @property
    def pattern(self) -> str:
        return f"{self._prefix}/*"

    def expect(self) -> tuple[str, asyncio.Future[Message]]:
        """A new reply subject, and the future of its reply."""
        self._count += 1
        subject = f"{self._prefix}/{self._count}"
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[subject] = future
        future.add_done_callback(lambda _: self._waiting.pop(subject, None))
        return subject, future

    async def listen(self, replies: Subscription) -> None:
        """Pass on replies until the subscription ends; then the waiting requests fail with its error."""
        try:
            async for message in replies:
                future = self._waiting.get(message.subject)
                if future is not None and not future.done():
                    future.set_result(message)
        except Exception as error:
            self._fail(error)
        finally:
            self._fail(ClientClosed())  # no further reply is expected

    def _fail(self, error: Exception) -> None:
        for future in list(self._waiting.values()):
            if not future.done():  # one that is done stays in the table for one turn of the loop
                future.set_exception(error)
