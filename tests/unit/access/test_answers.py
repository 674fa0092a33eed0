"""Each answer of an authorizer is checked by itself: a wrong one fails with its method and field, and does not affect others."""

import asyncio
from typing import Any

import pytest
import structlog

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule
from godwit.access.answers import check_connect, check_selector
from godwit.access.gate import Gate
from godwit.engine import AuthorizeReport, GrantOrder, Order, RefuseOrder
from godwit.errors import AuthorizerFailed


def forge(kind: type, **fields: Any) -> Any:
    """A value whose constructor never ran."""
    forged = object.__new__(kind)
    whole = (
        {"identity": "ann", "rules": (), "expires_ms": None, "token_id": None, "tenant": ""} if kind is Grant else {}
    )
    for name, value in (whole | fields).items():
        object.__setattr__(forged, name, value)
    return forged


class Raising(str):
    def __str__(self) -> str:
        raise RuntimeError("never")


END_MS = 1_795_000_000_000
WRONG: list[tuple[Any, str]] = [
    (forge(Grant, expires_ms=1e12), "Grant.expires_ms"),
    (forge(Grant, expires_ms=True), "Grant.expires_ms"),
    (forge(Grant, expires_ms=-1), "Grant.expires_ms"),
    (forge(Grant, expires_ms=2**80), "Grant.expires_ms"),
    (forge(Grant, expires_ms=1_795_000_000), "Grant.expires_ms must be Unix time in milliseconds"),
    (forge(Grant, token_id=12345), "Grant.token_id"),
    (forge(Grant, token_id="\ud800"), "Grant.token_id"),
    (forge(Grant, token_id="x" * 2_000), "Grant.token_id"),
    (forge(Grant, identity=b"ann"), "Grant.identity"),
    (forge(Grant, identity="\udfff"), "Grant.identity"),
    (forge(Grant, identity=""), "Grant.identity"),
    (forge(Grant, tenant=None), "Grant.tenant"),
    (forge(Grant, rules=("/a/**",)), "pattern"),
    (forge(Grant, rules=(forge(Rule, pattern=7, actions="both", verdict="allow"),)), "Rule.pattern"),
    (forge(Grant, rules=(forge(Rule, pattern="/a", actions="fly", verdict="allow"),)), "fly"),
    (forge(Refusal, reason=ValueError("no"), code=4002), "Refusal.reason"),
    (forge(Refusal, reason="no", code=1), "1"),
    (forge(Refusal, reason="no", code="4002"), "4002"),
    (forge(Refusal, reason="no", code=4100), "4100"),
    ({"identity": "ann"}, "dict"),
    (None, "NoneType"),
    (Grant, "type"),
]


@pytest.mark.parametrize(("answer", "field"), WRONG)
def test_a_wrong_answer_names_its_field(answer: Any, field: str) -> None:
    with pytest.raises(AuthorizerFailed) as raised:
        check_connect(answer)
    assert field in str(raised.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Grant("ann", expires_ms=1e12),  # type: ignore[arg-type]  # what a user may write
        lambda: Grant("ann", expires_ms=1_795_000_000),
        lambda: Grant("ann", token_id=12345),  # type: ignore[arg-type]  # what a user may write
        lambda: Refusal(ValueError("no")),  # type: ignore[arg-type]  # what a user may write
        lambda: Grant("ann", iter(lambda: Rule.allow("/a"), None)),
    ],
)
def test_a_wrong_value_is_refused_where_it_is_made(make: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="expires_ms|token_id|reason|rules"):
        make()


def test_a_good_answer_is_copied_plain() -> None:
    answer = check_connect(Grant(Raising("ann"), [Rule.allow("/a")], END_MS, "t", "acme"))
    assert answer == Grant("ann", [Rule.allow("/a")], END_MS, "t", "acme") and type(answer.identity) is str  # type: ignore[union-attr]  # a Grant
    assert len(check_connect(Refusal("x" * 5_000)).reason) == 1_000  # type: ignore[union-attr]  # a Refusal
    assert check_selector(True) is True
    with pytest.raises(AuthorizerFailed, match="answered a int"):
        check_selector(1)


async def test_good_logins_of_one_turn_do_not_suffer_by_four_wrong_ones() -> None:
    class Nearly(Authorizer):
        async def connect(self, question: ConnectQuestion) -> Any:
            return WRONG[question.connection][0] if question.connection < 4 else Grant(f"user-{question.connection}")

    orders: list[Order] = []
    enough = asyncio.Event()

    def send(batch: list[Order]) -> None:
        for order in batch:
            if isinstance(order, GrantOrder) and not isinstance(order.token_id, str | None):
                raise TypeError("the engine takes text")
        orders.extend(batch)
        if len(orders) == 40:
            enough.set()

    gate = Gate(Nearly(), send, timeout_ms=5_000, calls_max=100)
    with structlog.testing.capture_logs() as logs:
        for connection in range(40):
            gate.ask(AuthorizeReport(connection, None, None, "127.0.0.1:9", False))
        await asyncio.wait_for(enough.wait(), 5)
    refused = [order for order in orders if isinstance(order, RefuseOrder)]
    assert sorted(order.connection for order in refused) == [0, 1, 2, 3] and {order.code for order in refused} == {4204}
    assert len(logs) == 4 and all("connect: Grant." in event["reason"] for event in logs)
    assert gate.waiting == 0


async def test_whatever_the_engine_says_to_one_order_the_others_leave() -> None:
    sent: list[int] = []
    enough = asyncio.Event()

    def send(batch: list[Order]) -> None:
        if any(isinstance(order, GrantOrder) and order.connection == 1 for order in batch):
            raise TypeError("argument 'token_id': expected str")
        sent.extend(order.connection for order in batch)
        if len(sent) == 3:
            enough.set()

    class Good(Authorizer):
        async def connect(self, question: ConnectQuestion) -> Grant:
            return Grant("ann")

    gate = Gate(Good(), send, timeout_ms=5_000, calls_max=9)
    for connection in range(3):
        gate.ask(AuthorizeReport(connection, None, None, "127.0.0.1:9", False))
    await asyncio.wait_for(enough.wait(), 5)
    assert sent == [0, 1, 2]
