"""A user's authorizer on a thread of its own, where it answers each question and each answer is checked.

The gate uses it like any other authorizer and limits the time of a call; `start` and `stop` have limits here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from ..config.tree import AccessConfig
from ..extension import ExtensionHost
from .answers import check_connect, check_selector
from .authorizer import Authorizer, ConnectQuestion, SelectorQuestion
from .rights import Grant, Refusal, read_text


class HostedAuthorizer(Authorizer):
    """Wraps `inner`, whose methods are called on the host's thread only."""

    def __init__(self, inner: Authorizer, access: AccessConfig) -> None:
        self.inner = inner
        self.host = ExtensionHost("authorizer")
        self._access = access
        self.on_ask_again: Callable[[str | None, str | None], None] | None = None

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        answer: Grant | Refusal = await self.host.call(self._connect, question)
        return answer

    async def update_token(self, question: ConnectQuestion) -> Grant | Refusal:
        answer: Grant | Refusal = await self.host.call(self._update_token, question)
        return answer

    async def subscribe(self, question: SelectorQuestion) -> bool:
        answer: bool = await self.host.call(self._subscribe, question)
        return answer

    async def publish(self, question: SelectorQuestion) -> bool:
        answer: bool = await self.host.call(self._publish, question)
        return answer

    def list_trusted(self) -> list[str]:
        return ["authorizer"]

    async def start(self) -> None:
        limit_ms, loop = self._access.authorizer_start_timeout_ms, asyncio.get_running_loop()
        await self.host.call_within(limit_ms, "access.authorizer_start_timeout_ms", self._start, loop)

    async def stop(self) -> None:
        limit_ms = self._access.authorizer_stop_timeout_ms
        try:
            await self.host.call_within(limit_ms, "access.authorizer_stop_timeout_ms", self._stop)
        finally:
            await self.host.stop()

    def _give_ask_again(self, loop: asyncio.AbstractEventLoop) -> None:
        """The function `ask_again` that the extension may call on its own thread. A wrong argument raises in the caller;
        after the node has ended a call does nothing.
        """

        def ask_again(identity: str | None = None, tenant: str | None = None) -> None:
            if not all(name is None or isinstance(name, str) for name in (identity, tenant)):
                raise TypeError("ask_again takes an identity and a tenant: expected str or None")
            who, whose = (None if name is None else read_text("ask_again", name) for name in (identity, tenant))
            if self.on_ask_again is not None:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self.on_ask_again, who, whose)

        with suppress(AttributeError):  # an object with slots, which has no place for it
            self.inner.ask_again = ask_again  # type: ignore[method-assign]  # it is meant to be replaced

    # what the extension's attributes run is the extension's code, too: they are read and set on its thread
    async def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._give_ask_again(loop)
        await self.inner.start()

    async def _stop(self) -> None:
        await self.inner.stop()

    async def _connect(self, question: ConnectQuestion) -> Grant | Refusal:
        return _own(check_connect(await self.inner.connect(question)))

    async def _update_token(self, question: ConnectQuestion) -> Grant | Refusal:
        return _own(check_connect(await self.inner.update_token(question)))

    async def _subscribe(self, question: SelectorQuestion) -> bool:
        return check_selector(await self.inner.subscribe(question))

    async def _publish(self, question: SelectorQuestion) -> bool:
        return check_selector(await self.inner.publish(question))


def _own(answer: Grant | Refusal) -> Grant | Refusal:
    """A user's authorizer vouches for its identities itself, and for no other authority."""
    if not isinstance(answer, Grant):
        return answer
    return replace(answer, source=None, authority="authorizer", configured=0)
