"""Copies of an e-mail: each goes out once, and is tried again, suppressed and shown like any delivery."""

from __future__ import annotations

import asyncio
import email
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from godwit.dispatch.channels.email import sender
from godwit.dispatch.pure import retry
from tests.dispatch.email.test_email import DEADLINE_S, mailing
from tests.dispatch.email.test_overrides import Copying, send, wait_until_settled


class Busy(Copying):
    """Refuses a copy for now, once for each answer that is given."""

    def __init__(self, *answers: str) -> None:
        super().__init__()
        self.answers = list(answers)

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, _: Any) -> str:
        if address.startswith("boss") and self.answers:
            return self.answers.pop()
        return await super().handle_RCPT(server, session, envelope, address, _)


async def test_a_copy_is_tried_again_suppressed_and_shown_like_any_delivery(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "GREYLIST_MS", 0)
    monkeypatch.setattr(retry, "SCHEDULE_MS", (0, 0, 0))
    server = Busy("450 4.2.0 greylisted", "421 4.3.2 leaving")
    copies = ["boss@shop.example", "gone@shop.example", "left@shop.example"]
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, server) as both:
        await both.api("PUT", "/v1/suppressions/email/left@shop.example", {})
        assert (await send(both, {"cc": copies}))[0] == 202
        assert await wait_until_settled(both) == {"failed": 1, "sent": 2, "suppressed": 1}
        _, answer = await both.api("GET", "/v1/notifications/n1/deliveries")
        shown = {
            row["address"]: (row["state"], row["attempt"]) for row in answer["deliveries"] if row["channel"] == "email"
        }
        assert shown == {"mail": ("sent", 1), "cc/0": ("sent", 3), "cc/1": ("failed", 1), "cc/2": ("suppressed", 0)}
        _, answer = await both.api("GET", "/v1/dead-letters")
        assert [(letter["address"], letter["reason"]) for letter in answer["dead_letters"]] == [("cc/1", "address")]
        _, answer = await both.api("GET", "/v1/receivers/ann")
        assert answer["addresses"][0]["state"] == "active", "what a copy came to says nothing about the receiver"
    assert server.recipients == [["ann@mail.example"], ["boss@shop.example"]]
    assert email.message_from_bytes(server.taken[1])["To"] == "ann@mail.example"


async def test_copies_go_out_once_however_many_addresses_a_receiver_has(tmp_path: Path, runtime: Path) -> None:
    server = Copying()
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, server) as both:
        for number in range(3):
            body = {"channel": "email", "value": f"ann{number}@mail.example"}
            assert (await both.api("PUT", f"/v1/receivers/ann/addresses/more{number}", body))[0] == 200
        assert (await send(both, {"cc": ["boss@shop.example"]}))[0] == 202
        await wait_until_settled(both)
    sent = sorted(recipient for recipients in server.recipients for recipient in recipients)
    assert sent == [
        "ann0@mail.example",
        "ann1@mail.example",
        "ann2@mail.example",
        "ann@mail.example",
        "boss@shop.example",
    ]
