"""The inbox with answers that are not dispatch's or arrive at once, with failing token functions, and after its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from godwit.client.errors import ClientClosed, Unauthorized
from godwit.client.inbox import Inbox, requests
from godwit.client.inbox.requests import RECEIVER_MISSING, DispatchRefused, DispatchRequests, DispatchUnreachable
from tests.waiting import until

DEADLINE_S = 30
EMPTY = {"head": "1.1", "unread": 0, "unseen": 0, "complete": True, "items": [], "subject": "/$inbox/t/ann"}
GONE = {"code": RECEIVER_MISSING, "title": "ReceiverMissing", "detail": "The receiver does not exist."}


class Site:
    """Answers in turn, then without changes, and holds long polls; notes what was marked."""

    def __init__(self, *answers: web.Response) -> None:
        self.answers, self.marks = list(answers), list[dict[str, str]]()
        self.head, self.refused_marks, self.is_over = 1, 0, False

    async def answer(self, request: web.Request) -> web.Response:
        if request.method == "POST":
            self.marks.append(await request.json())
            self.refused_marks -= 1
            if self.refused_marks >= 0:
                return web.json_response({"code": 4300, "title": "RequestInvalid"}, status=400)
        if self.answers:
            return self.answers.pop(0)
        await until(lambda: self.is_over or request.query.get("after") != f"1.{self.head}")  # a long poll
        return web.json_response({**EMPTY, "head": f"1.{self.head}"})


@asynccontextmanager
async def serving(site: Site) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", site.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        listener = web.TCPSite(runner, "127.0.0.1", 0)
        await listener.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        site.is_over = True
        await runner.cleanup()


@asynccontextmanager
async def opened(site: Site, token: str | Callable[[], str] = "t") -> AsyncIterator[DispatchRequests]:
    async with serving(site) as url:
        dispatch = DispatchRequests(url, token)
        await dispatch.open()
        try:
            yield dispatch
        finally:
            await dispatch.close()


@pytest.mark.parametrize("text", ["<html>log in</html>", '{"head":1}', "[]", ""])
async def test_an_answer_that_is_not_of_dispatch_is_tried_again(text: str) -> None:
    async with asyncio.timeout(DEADLINE_S), serving(Site(web.Response(text=text))) as url, Inbox(url, "t") as inbox:
        assert inbox.items == []


async def test_a_token_function_that_fails_once_is_asked_again() -> None:
    given: list[Exception | str] = [OSError("no network"), ValueError("no token"), "", "t"]

    def token() -> str:
        one = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(one, Exception):
            raise one
        return one

    async with asyncio.timeout(DEADLINE_S), serving(Site()) as url, Inbox(url, token) as inbox:
        assert inbox.items == [] and given == ["t"]


async def test_a_token_function_ends_the_inbox_with_unauthorized() -> None:
    def token() -> str:
        raise Unauthorized("logged out")

    async with asyncio.timeout(DEADLINE_S), serving(Site()) as url:
        with pytest.raises(Unauthorized, match="logged out"):
            async with Inbox(url, token):
                pass


async def test_the_time_limit_has_the_token_function_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "TIMEOUT_S", 0.02)

    async def token() -> str:
        return await asyncio.get_running_loop().create_future()

    async with asyncio.timeout(DEADLINE_S), serving(Site()) as url:
        dispatch = DispatchRequests(url, token)
        await dispatch.open()
        with pytest.raises(DispatchUnreachable, match="did not answer /v1/inbox"):
            await dispatch.ask("GET", "/v1/inbox?before=1", object)
        await dispatch.close()


async def test_after_its_end_a_request_raises_client_closed() -> None:
    async with asyncio.timeout(DEADLINE_S), opened(Site()) as dispatch:
        await dispatch.close()
        with pytest.raises(ClientClosed):
            await dispatch.ask("GET", "/v1/inbox", object)


async def test_a_receiver_that_is_gone_is_waited_for_once_there_was_one() -> None:
    gone = [web.json_response(GONE, status=404) for _ in range(2)]
    async with asyncio.timeout(DEADLINE_S), opened(Site(gone[0], web.json_response(EMPTY), gone[1])) as dispatch:
        for may_retry in (False, True):
            with pytest.raises(DispatchRefused) as refused:
                await dispatch.ask("GET", "/v1/inbox", object)
            assert dispatch.may_retry(refused.value) is may_retry
            if not may_retry:
                await dispatch.ask("GET", "/v1/inbox", object)


async def test_a_refused_confirmation_does_not_end_the_inbox_and_the_next_change_is_confirmed() -> None:
    site = Site()
    site.refused_marks = 1
    async with asyncio.timeout(DEADLINE_S), serving(site) as url, Inbox(url, "t", confirm_ms=20) as inbox:
        await until(lambda: len(site.marks) == 1)
        site.head = 2
        await inbox.changed()
        await until(lambda: len(site.marks) == 2)
        assert [mark["up_to"] for mark in site.marks] == ["1.1", "1.2"]
        assert inbox._error is None
