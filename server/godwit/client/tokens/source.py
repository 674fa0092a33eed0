"""Requests a token with limits: a token function has 10 seconds, and after each failure the wait before the next call grows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ..arguments import check_token
from ..errors import ClientError

TOKEN_MS = 10_000  # for a token function to answer
TOKEN_AGAIN_MS = 1_000  # after it was asked; doubles with each failure
TOKEN_AGAIN_MS_MAX = 60_000

TokenSource: TypeAlias = Callable[[], Awaitable[str | None]]


class Tokens:
    """One source of tokens, and when it may be called again."""

    def __init__(self, source: TokenSource, now_ms: Callable[[], int]) -> None:
        self._source, self._now_ms = source, now_ms
        self._ask_at = 0  # not asked for again before
        self._failures = 0  # since the last token

    @property
    def may_be_asked(self) -> bool:
        return self._now_ms() >= self._ask_at

    async def fetch(self) -> str | None:
        """A token for a new connection; after a failure this waits first."""
        if self._failures:
            await asyncio.sleep(max(0, self._ask_at - self._now_ms()) / 1000)
        return await self.ask()

    async def ask(self) -> str | None:
        """The token, within its time. The function runs in a task of its own, so that a cancellation in it does not cancel the client."""
        asked = asyncio.ensure_future(self._source())
        try:
            await asyncio.wait([asked], timeout=TOKEN_MS / 1000)
            if not asked.done():
                raise TimeoutError(f"the token function did not answer within {TOKEN_MS} ms")
            if asked.cancelled():
                raise ClientError("the token function was cancelled")
            token = asked.result()
            if token is not None:
                check_token(token)
            self._failures = 0
            return token
        except Exception:
            self._failures += 1
            raise
        finally:
            asked.cancel()
            again_ms = TOKEN_AGAIN_MS << min(max(self._failures - 1, 0), 10)
            self._ask_at = self._now_ms() + min(again_ms, TOKEN_AGAIN_MS_MAX)
