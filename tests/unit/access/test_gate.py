"""For anything that an authorizer does (answer, raise, be late, return nonsense, ignore cancellation), each question gets
one answer in time, and everything except a clear yes is a no.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
import structlog

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule, SelectorQuestion
from godwit.access.gate import Gate
from godwit.access.hosted import HostedAuthorizer
from godwit.access.revocation import Revocations
from godwit.codes import Code
from godwit.config.tree import AccessConfig
from godwit.engine import AnswerOrder, AskAgainOrder, AskReport, AuthorizeReport, GrantOrder, Order, RefuseOrder
from godwit.errors import KeysUnavailable

TOKEN = "correct-horse-battery-staple"
CONNECT = AuthorizeReport(7, TOKEN, "test/1", "127.0.0.1:9", False)
ASK = AskReport(7, "ann", "publish", "/orders/1")


class Scripted(Authorizer):
    """Returns the answers of the test."""

    def __init__(self, answer: Callable[[], Awaitable[Any]]) -> None:
        self._answer = answer
        self.renewals = 0

    async def connect(self, question: ConnectQuestion) -> Any:
        return await self._answer()

    def list_trusted(self) -> list[str]:
        return ["jwt:https://id"]

    async def update_token(self, question: ConnectQuestion) -> Any:
        self.renewals += 1
        return await self._answer()

    async def publish(self, question: SelectorQuestion) -> Any:
        return await self._answer()


async def run(answer: Callable[[], Awaitable[Any]], question: Any, *, timeout_ms: int = 5_000) -> tuple[Order, Gate]:
    orders: asyncio.Queue[list[Order]] = asyncio.Queue()
    gate = Gate(Scripted(answer), orders.put_nowait, timeout_ms=timeout_ms, calls_max=2)
    gate.ask(question)
    [order] = await asyncio.wait_for(orders.get(), 5)
    assert gate.waiting == 0
    return order, gate


def say(answer: Any) -> Callable[[], Awaitable[Any]]:
    async def give() -> Any:
        return answer

    return give


async def fail() -> Any:
    raise RuntimeError(f"no database for {TOKEN}")


async def never() -> Any:
    await asyncio.Event().wait()


async def cling() -> Any:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return Grant("late")


async def test_a_grant_crosses_as_compiled_rules() -> None:
    grant = Grant("ann", [Rule.allow("/a/**", "subscribe")], 1_795_000_000_000, configured=1)
    order, gate = await run(say(grant), CONNECT)
    assert order == GrantOrder(7, "ann", [("/a/**", "subscribe", "allow")], 1_795_000_000_000, configured=1)
    assert gate.counts == {"asked": 1, "granted": 1, "refused": 0, "failed": 0, "revoked": 0}


async def test_a_reload_is_judged_by_the_new_configuration_and_sends_first_what_the_old_one_granted() -> None:
    orders: asyncio.Queue[list[Order]] = asyncio.Queue()
    came, answers = asyncio.Event(), iter(["old", "slow", "new"])

    async def answer() -> Any:
        name = next(answers)
        if name == "slow":
            came.set()
            await never()
        return Grant(name)

    gate = Gate(Scripted(answer), orders.put_nowait, timeout_ms=5_000, calls_max=2)
    gate.ask(CONNECT)
    gate.ask(replace(CONNECT, connection=8))
    await came.wait()
    gate.judge_again()
    [first] = orders.get_nowait()
    [second] = await asyncio.wait_for(orders.get(), 5)
    assert first == GrantOrder(7, "old", [], None) and second == GrantOrder(8, "new", [], None)
    assert gate.waiting == 0 and orders.empty()


async def test_a_refusal_keeps_its_code() -> None:
    order, gate = await run(say(Refusal("no", Code.TOKEN_INVALID)), CONNECT)
    assert order == RefuseOrder(7, 4002, "no")
    assert gate.counts["refused"] == 1


@pytest.mark.parametrize("answer", [fail, never, cling, say(None), say(True), say("yes")])
async def test_a_connection_without_a_clear_answer_is_refused_and_may_come_back(answer: Any) -> None:
    with structlog.testing.capture_logs() as logs:
        order, gate = await run(answer, CONNECT, timeout_ms=10)
    assert isinstance(order, RefuseOrder) and order.code == Code.AUTHORIZER_UNAVAILABLE
    assert gate.counts["failed"] == 1
    [line] = logs
    assert line["event"] == "authorizer_failed" and line["reason"].startswith("connect: ") and TOKEN not in str(line)


async def test_a_token_whose_keys_cannot_be_fetched_is_refused_with_a_code_of_its_own() -> None:
    async def answer() -> Any:
        raise KeysUnavailable("the keys of https://id were fetched a moment ago: try again")

    order, gate = await run(answer, CONNECT)
    assert isinstance(order, RefuseOrder) and order.code == Code.KEYS_UNAVAILABLE
    assert gate.counts["failed"] == 1


async def test_an_end_in_seconds_is_named_once_in_the_log() -> None:
    async def answer() -> Any:
        return Grant("ann", expires_ms=1_795_000_000)

    with structlog.testing.capture_logs() as logs:
        order, _ = await run(answer, CONNECT)
    assert isinstance(order, RefuseOrder) and order.code == Code.AUTHORIZER_UNAVAILABLE
    [line] = logs
    assert line["event"] == "authorizer_failed"
    assert line["reason"] == "connect: ValueError: Grant.expires_ms must be Unix time in milliseconds"


@pytest.mark.parametrize("answer", [fail, never, cling, say(None), say(1), say(Grant("x"))])
async def test_a_selector_without_an_answer_is_allowed_by_nobody_and_stays_open(answer: Any) -> None:
    order, gate = await run(answer, ASK, timeout_ms=10)
    assert order == AnswerOrder(7, ("/orders/1", "publish", "ask"))
    assert (gate.counts["failed"], gate.counts["refused"], gate.counts["granted"]) == (1, 1, 0)


async def test_a_selector_with_a_no_is_denied() -> None:
    order, gate = await run(say(False), ASK)
    assert order == AnswerOrder(7, ("/orders/1", "publish", "deny")) and gate.counts["failed"] == 0


async def test_a_selector_with_a_yes_is_allowed() -> None:
    order, _ = await run(say(True), ASK)
    assert order == AnswerOrder(7, ("/orders/1", "publish", "allow"))


async def test_a_renewed_token_is_an_update() -> None:
    orders: asyncio.Queue[list[Order]] = asyncio.Queue()
    authorizer = Scripted(say(Grant("ann")))
    gate = Gate(authorizer, orders.put_nowait, timeout_ms=5_000, calls_max=1)
    gate.ask(AuthorizeReport(7, TOKEN, None, "127.0.0.1:9", True))
    await asyncio.wait_for(orders.get(), 5)
    assert authorizer.renewals == 1


async def test_answers_of_one_turn_leave_as_one_batch_and_calls_are_bounded() -> None:
    calls = most = 0
    release = asyncio.Event()

    async def count() -> Grant:
        nonlocal calls, most
        calls += 1
        most = max(most, calls)
        await release.wait()
        calls -= 1
        return Grant("ann")

    orders: asyncio.Queue[list[Order]] = asyncio.Queue()
    gate = Gate(Scripted(count), orders.put_nowait, timeout_ms=5_000, calls_max=3)
    for connection in range(10):
        gate.ask(AuthorizeReport(connection, None, None, "127.0.0.1:9", False))
    await asyncio.sleep(0)
    assert gate.waiting == 10
    release.set()
    answered: list[Order] = []
    batches = 0
    while len(answered) < 10:
        answered += await asyncio.wait_for(orders.get(), 5)
        batches += 1
    assert most == 3 and batches < 10 and sorted(order.connection for order in answered) == list(range(10))


async def test_a_question_whose_connection_is_gone_is_dropped() -> None:
    orders: list[Any] = []
    gate = Gate(Scripted(never), orders.append, timeout_ms=5_000, calls_max=1)
    gate.ask(CONNECT)
    gate.withdraw(7)
    gate.withdraw(8)
    gate.ask(ASK)
    gate.stop()
    await asyncio.sleep(0)
    assert gate.waiting == 0 and orders == []


async def test_without_an_authorizer_the_answer_is_no() -> None:
    orders: asyncio.Queue[list[Order]] = asyncio.Queue()
    Gate(None, orders.put_nowait, timeout_ms=5_000, calls_max=1).ask(CONNECT)
    [order] = await asyncio.wait_for(orders.get(), 5)
    assert isinstance(order, RefuseOrder)


@pytest.mark.parametrize(
    ("source", "code"), [(None, Code.AUTHORIZER_UNAVAILABLE), ("jwt:https://id\nk", Code.TOKEN_INVALID)]
)
async def test_an_answer_the_engine_cannot_compile_takes_no_other_with_it(source: str | None, code: Code) -> None:
    sent: list[Order] = []
    enough = asyncio.Event()

    def send(orders: list[Order]) -> None:
        if any(isinstance(order, GrantOrder) and order.connection == 1 for order in orders):
            raise ValueError("too many rules")
        sent.extend(orders)
        if len(sent) == 3:
            enough.set()

    gate = Gate(Scripted(say(Grant("ann", source=source))), send, timeout_ms=5_000, calls_max=9)
    for connection in range(3):
        gate.ask(AuthorizeReport(connection, None, None, "127.0.0.1:9", False))
    await asyncio.wait_for(enough.wait(), 5)
    assert [(order.connection, type(order)) for order in sent] == [(0, GrantOrder), (1, RefuseOrder), (2, GrantOrder)]
    assert isinstance(sent[1], RefuseOrder) and sent[1].code == code, "a token's rules are its own fault"


@pytest.mark.parametrize("same_holder", [(), ("certificate", "jwt:https://id")])
async def test_a_grant_says_who_vouches_for_it(same_holder: tuple[str, ...]) -> None:
    orders: asyncio.Queue[list[Order]] = asyncio.Queue()
    answer = say(Grant("ann", tenant="acme", authority="jwt:https://id"))
    revocations = Revocations(same_holder=same_holder)
    gate = Gate(Scripted(answer), orders.put_nowait, timeout_ms=5_000, calls_max=2, revocations=revocations)
    gate.ask(CONNECT)
    [order] = await asyncio.wait_for(orders.get(), 5)
    assert isinstance(order, GrantOrder)
    assert (order.identity, order.tenant, order.authority) == (
        "ann",
        "acme",
        "certificate" if same_holder else "jwt:https://id",
    )
    assert "ann" in gate.seen


async def test_a_question_in_the_background_does_not_disturb_the_one_that_is_waited_for() -> None:
    orders: asyncio.Queue[list[Order]] = asyncio.Queue()
    gate = Gate(Scripted(say(True)), orders.put_nowait, timeout_ms=5_000, calls_max=2)
    gate.ask(ASK)
    gate.ask(replace(ASK, selector="/b", is_background=True))
    gate.ask(replace(ASK, selector="/c", is_background=True))
    assert gate.waiting == 3
    answers: list[Order] = []
    while len(answers) < 3:
        answers += await asyncio.wait_for(orders.get(), 5)
    assert {(order.rule[0], order.is_background) for order in answers if isinstance(order, AnswerOrder)} == {
        ("/orders/1", False),
        ("/b", True),
        ("/c", True),
    }
    gate.ask(replace(ASK, selector="/b", is_background=True))
    gate.ask(ASK)
    gate.withdraw(ASK.connection)
    assert gate.waiting == 0


async def test_what_an_authorizer_takes_back_within_a_moment_is_one_batch() -> None:
    orders: asyncio.Queue[list[Any]] = asyncio.Queue()
    hosted = HostedAuthorizer(Scripted(say(True)), AccessConfig())
    gate = Gate(hosted, orders.put_nowait, timeout_ms=5_000, calls_max=2)
    assert hosted.on_ask_again is not None
    for identity in ("ann", "bob", "ann", None):
        hosted.on_ask_again(identity, None)
    assert set(await orders.get()) == {AskAgainOrder("ann"), AskAgainOrder("bob"), AskAgainOrder()}
    gate.stop()


async def test_what_is_being_answered_is_asked_again_too() -> None:
    orders: asyncio.Queue[list[Any]] = asyncio.Queue()
    is_allowed, has_read, may_answer = True, asyncio.Event(), asyncio.Event()

    async def read() -> Any:
        has_read.set()
        found = is_allowed
        await may_answer.wait()
        return found

    hosted = Scripted(read)
    hosted.on_ask_again = None  # type: ignore[attr-defined]  # the place where a gate puts its function, as on a real host
    gate = Gate(hosted, orders.put_nowait, timeout_ms=5_000, calls_max=4)
    gate.ask(ASK)
    await has_read.wait()
    is_allowed = False
    hosted.on_ask_again(ASK.identity, None)  # type: ignore[attr-defined]  # set by the gate
    assert await orders.get() == [AskAgainOrder(ASK.identity)]
    may_answer.set()
    assert await orders.get() == [AnswerOrder(7, ("/orders/1", "publish", "deny"))]
    gate.stop()


async def test_questions_in_the_background_wait_for_their_turn() -> None:
    orders: asyncio.Queue[list[Order]] = asyncio.Queue()
    release = asyncio.Event()

    async def slow() -> Any:
        await release.wait()
        return True

    gate = Gate(Scripted(slow), orders.put_nowait, timeout_ms=200, calls_max=1)
    gate.ask(ASK)
    gate.ask(replace(ASK, selector="/orders/2", is_background=True))
    [late] = await orders.get()
    assert late == AnswerOrder(7, ("/orders/1", "publish", "ask"))
    release.set()
    [answered] = await orders.get()
    assert answered == AnswerOrder(7, ("/orders/2", "publish", "allow"), True)
