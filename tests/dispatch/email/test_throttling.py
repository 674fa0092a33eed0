"""A mail server that takes no more for now: the whole domain waits, other domains do not, and nothing counts as an attempt."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from godwit.dispatch.channels.email import sender
from godwit.dispatch.channels.email.classes import classify
from godwit.dispatch.model import Result
from tests.dispatch.conftest import Running, running
from tests.dispatch.email.test_providers import DEADLINE_S, Relay, listening, make_body
from tests.dispatch.test_inbox import wait_for

COUNT = 12
AT_ONCE = 2
SETTINGS = {"dispatch_limits": {"sweep_ms": 100}}


class Busy(Relay):
    """Refuses the recipients of busy.example, as often as configured."""

    def __init__(self, refusal: str, refusals: int) -> None:
        super().__init__()
        self.refusal, self.refusals = refusal, refusals
        self.asked: Counter[str] = Counter()
        self.recipients: Counter[str] = Counter()

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, _: object) -> str:
        domain = address.partition("@")[2]
        self.asked[domain] += 1
        if domain == "busy.example" and self.refusals:
            self.refusals -= 1
            return self.refusal
        self.recipients[address] += 1
        envelope.rcpt_tos.append(address)
        return "250 OK"


async def send_to(both: Running, name: str, *domains: str) -> None:
    """One notification to COUNT receivers at each domain."""
    addresses = [f"{name}-{number}@{domain}" for number in range(COUNT) for domain in domains]
    lines = [
        json.dumps({"id": value, "addresses": [{"id": "m", "channel": "email", "value": value}]}) for value in addresses
    ]
    await both.api("POST", "/v1/receivers/import", "\n".join(lines).encode())
    body = {"to": {"receivers": addresses}, "content": {"title": "hi"}}
    assert (await both.api("PUT", f"/v1/notifications/{name}", body))[0] == 202


async def list_all(both: Running, name: str) -> list[dict[str, Any]]:
    _, answer = await both.api("GET", f"/v1/notifications/{name}/deliveries?channel=email")
    return list(answer["deliveries"])


async def wait_for_sent(both: Running, name: str) -> None:
    while Counter(row["state"] for row in await list_all(both, name))["sent"] < COUNT:
        pass


@pytest.mark.parametrize("refusal", ["450 4.7.1 too many messages", "421 4.7.28 unusual rate of mail"])
async def test_the_whole_domain_waits_and_others_do_not(tmp_path: Path, runtime: Path, refusal: str) -> None:
    relay = Busy(refusal, 10**6)
    async with asyncio.timeout(DEADLINE_S), listening(relay), running(tmp_path, SETTINGS) as both:
        await both.api("PUT", "/v1/providers/only", make_body(relay, sends_max=AT_ONCE))
        await send_to(both, "n1", "busy.example", "quick.example")
        await wait_for_sent(both, "n1")
        await send_to(both, "n2", "quick.example")
        await wait_for_sent(both, "n2")
        rows = [row for row in await list_all(both, "n1") if row["state"] != "sent"]
        assert relay.asked["busy.example"] <= AT_ONCE and relay.asked["quick.example"] == 2 * COUNT
        assert len(rows) == COUNT
        assert {row["attempt"] for row in rows} == {0}, "none of them was an attempt"
        assert {row["ref"] for row in rows if row["reason"] == "throttled"} == {refusal}


async def test_a_domain_that_takes_again_gets_everything_once(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "SLOW_MS", 200)
    relay = Busy("451 4.7.0 Rate limited", 3)
    async with asyncio.timeout(DEADLINE_S), listening(relay), running(tmp_path, SETTINGS) as both:
        await both.api("PUT", "/v1/providers/only", make_body(relay, sends_max=AT_ONCE))
        await send_to(both, "n1", "busy.example")
        await wait_for(both, "n1")
        rows = await list_all(both, "n1")
        assert {(row["state"], row["attempt"], row["possible_duplicate"]) for row in rows} == {("sent", 1, False)}
        assert len(relay.recipients) == COUNT and set(relay.recipients.values()) == {1}


@pytest.mark.parametrize(
    ("code", "text", "result"),
    [
        (421, "4.7.0 Too many concurrent connections", Result.THROTTLED),
        (452, "4.5.3 too many recipients", Result.THROTTLED),
        (450, "4.2.1 rate-limit exceeded", Result.THROTTLED),
        (421, "4.3.2 leaving", Result.TEMPORARY),
        (450, "4.2.0 greylisted", Result.TEMPORARY),
        (452, "4.2.2 mailbox over quota", Result.TEMPORARY),
        (550, "5.7.1 too many complaints", Result.CONTENT),
    ],
)
def test_only_words_about_too_much_throttle(code: int, text: str, result: Result) -> None:
    assert classify(code, text) is result
