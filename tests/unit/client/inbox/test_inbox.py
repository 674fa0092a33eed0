"""The inbox asks again after a pause where an answer brings nothing: what answers may not wait, or may repeat itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from godwit.client.inbox import Inbox, inbox
from tests.unit.client.inbox.test_requests import EMPTY, Site, serving
from tests.waiting import until

DEADLINE_S = 30


class Hasty(Site):
    """Answers each request at once, also a long poll; counts those that ask for changes."""

    def __init__(self, **answer: Any) -> None:
        super().__init__()
        self.changes, self.given = 0, answer

    async def answer(self, request: web.Request) -> web.Response:
        is_change = "after" in request.query
        self.changes += is_change
        return web.json_response({**EMPTY, **(self.given if is_change else {})})


@pytest.mark.parametrize("given", [{}, {"complete": False}], ids=["nothing new", "nothing, and more is missing"])
async def test_answers_that_bring_nothing_are_asked_for_again_after_a_pause(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[int] = []
    turn = asyncio.Semaphore(0)

    async def pause(failures: int) -> None:
        pauses.append(failures)
        await turn.acquire()

    monkeypatch.setattr(inbox, "_pause", pause)
    monkeypatch.setattr(inbox, "AT_ONCE_S", 3600)
    site = Hasty(**given)
    loops = 2 if given else 1  # the long polls, and the fetches of what is missing
    async with asyncio.timeout(DEADLINE_S), serving(site) as url, Inbox(url, "t", confirm_ms=0):
        for failures in range(3):
            await until(lambda: len(pauses) == loops * (failures + 1))  # noqa: B023  awaited within its turn
            assert site.changes == len(pauses)
            for _ in range(loops):
                turn.release()
    assert pauses == sorted([0, 1, 2] * loops)
