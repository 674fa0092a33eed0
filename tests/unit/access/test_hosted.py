"""Each question is answered on the authorizer's own thread, and the result is a plain value or an error."""

import asyncio
import threading

import pytest

from godwit.access import Authorizer, ConnectQuestion, Grant, Rule, SelectorQuestion
from godwit.access.hosted import HostedAuthorizer
from godwit.config.tree import AccessConfig
from godwit.errors import AuthorizerFailed


class Local(Authorizer):
    def __init__(self) -> None:
        self.threads: list[str] = []

    async def connect(self, question: ConnectQuestion) -> Grant:
        self.threads.append(threading.current_thread().name)
        return Grant("ann", [Rule.allow("/a")], source="jwt:id", authority="jwt:id", configured=1)

    async def subscribe(self, question: SelectorQuestion) -> bool:
        return True

    async def publish(self, question: SelectorQuestion) -> bool:
        return 1  # type: ignore[return-value]  # what a user may write


async def test_questions_are_answered_on_one_thread_and_checked() -> None:
    local = Local()
    hosted = HostedAuthorizer(local, AccessConfig())
    await hosted.start()
    put, selector = ConnectQuestion(1, None, None, "127.0.0.1:9"), SelectorQuestion(1, "ann", "/a")
    assert await hosted.connect(put) == await hosted.update_token(put) == Grant("ann", [Rule.allow("/a")])
    assert await hosted.subscribe(selector) is True
    with pytest.raises(AuthorizerFailed, match="answered a int"):
        await hosted.publish(selector)
    await hosted.stop()
    assert set(local.threads) == {"godwit-authorizer"} and threading.current_thread().name not in local.threads


async def test_an_authorizer_calls_for_its_questions_from_any_thread() -> None:
    local, heard = Local(), asyncio.Queue[tuple[str | None, str | None]]()
    hosted = HostedAuthorizer(local, AccessConfig())
    hosted.on_ask_again = lambda identity, tenant: heard.put_nowait((identity, tenant))
    await hosted.start()
    await asyncio.to_thread(local.ask_again, "ann")
    assert await heard.get() == ("ann", None)
    local.ask_again()
    assert await heard.get() == (None, None)
    with pytest.raises(TypeError, match="expected str or None"):
        local.ask_again(5)  # type: ignore[arg-type]  # what a user may write
    for names in (("\ud800", None), (None, "\ud800")):  # the engine could take nothing of that batch
        with pytest.raises(ValueError, match="lone surrogate"):
            local.ask_again(*names)
    await hosted.stop()
