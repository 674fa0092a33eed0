"""Whether a source may still vouch for a holder while answers are pending."""

import asyncio

import pytest

from godwit.access import Authorizer, ConnectQuestion, Grant
from godwit.access.gate import Gate
from godwit.access.vouching import is_trusted, list_judges
from godwit.codes import Code
from godwit.engine import AuthorizeReport, GrantOrder, RefuseOrder
from tests.waiting import until


class Vouches(Authorizer):
    """Gives the answer of the test, when the test releases it."""

    def __init__(self, *trusted: str, inner: Authorizer | None = None) -> None:
        self.trusted, self.inner = list(trusted), inner
        self.open = asyncio.Event()

    async def connect(self, question: ConnectQuestion) -> Grant:
        await self.open.wait()
        return Grant("ann", source=question.token)

    def list_trusted(self) -> list[str]:
        return self.trusted


@pytest.mark.parametrize(
    ("source", "is_so"),
    [
        (None, True),
        ("jwt:a\nk", True),
        ("jwt:b\nk", True),
        ("jwt:b", True),
        ("jwt:bc", False),
        ("jwt:a", False),
        ("jwt:a\nkk", False),
    ],
)
async def test_an_authority_is_trusted_with_all_of_its_keys_and_a_key_alone(source: str | None, is_so: bool) -> None:
    outer = Vouches("jwt:a\nk", inner=Vouches("jwt:b"))
    assert len(list(list_judges(outer))) == 2
    assert is_trusted(outer, source) == is_so


async def test_a_grant_on_its_way_ends_with_the_issuer_behind_it() -> None:
    judge, sent = Vouches("jwt:a", "jwt:b"), []
    gate = Gate(judge, sent.extend, timeout_ms=60_000, calls_max=9)
    for connection, token in enumerate(("jwt:a\nk", "jwt:b")):
        gate.ask(AuthorizeReport(connection, token, None, "127.0.0.1", False))
    judge.trusted.remove("jwt:a")
    judge.open.set()
    await until(lambda: len(sent) == 2)
    refused, granted = sorted(sent, key=lambda order: order.connection)
    assert isinstance(refused, RefuseOrder) and refused.code == Code.TOKEN_INVALID
    assert isinstance(granted, GrantOrder)
