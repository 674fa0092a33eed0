"""A token that a connected client renews is an event of its own, for audits and the log of sessions, and contains no token."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import jwt
import pytest
from structlog.testing import capture_logs

from godwit import testing
from godwit.audit import AccessEvent, Audit, Event
from tests.raw_client import raw_client
from tests.waiting import until

ISSUER, SECRET = "https://login.example", "s" * 64


class Heard(Audit):
    def __init__(self) -> None:
        self.events: list[AccessEvent] = []

    async def take(self, events: Sequence[Event]) -> None:
        self.events += [event for event in events if isinstance(event, AccessEvent)]


HEARD = Heard()


def make_token(name: str) -> str:
    claims = {"iss": ISSUER, "sub": "ann", "org": "acme", "jti": name, "exp": time.time() + 600}
    return jwt.encode(claims, SECRET, "HS256")


async def test_a_renewed_token_is_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard()
    monkeypatch.setattr(f"{__name__}.HEARD", heard)
    (tmp_path / "secret").write_text(SECRET)
    issuer = {"keys_file": str(tmp_path / "secret"), "algorithms": ["HS256"], "tenant_claim": "org"}
    settings = {
        "access": {"mode": "jwt"},
        "issuers": {ISSUER: issuer},
        "audit": {"plugins": [f"{__name__}:HEARD"], "batch_ms": 10},
        "logging": {"sessions": True},
    }
    with capture_logs() as lines:
        async with (
            testing.node(settings) as node,
            asyncio.timeout(60),
            raw_client(f"ws://{node.client}") as client,
        ):
            for number in range(3):
                answer = await client.ask({"id": number, "connect": {"token": make_token(f"t{number}")}})
                assert answer["ok"] == "connected"
            await until(lambda: len(heard.events) >= 3)
    events = [(one.what, one.identity, one.reason, one.tenant, one.authority) for one in heard.events[:3]]
    who = ("acme", f"jwt:{ISSUER}")
    assert events == [
        ("connected", "ann", "", *who),
        ("renewed", "ann", "t1", *who),
        ("renewed", "ann", "t2", *who),
    ]
    assert [line["token_id"] for line in lines if line["event"] == "session_renewed"] == ["t1", "t2"]
