"""Reports that must not hurt: about copies, about an address that was corrected, too early, of another kind, or made to burn time."""

from __future__ import annotations

import asyncio
import email
from pathlib import Path
from typing import Any

import aiosmtplib
import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from godwit.dispatch.channels.email import bounces
from godwit.dispatch.channels.email.classes import classify, hide_addresses
from godwit.dispatch.channels.email.reports import read_report
from godwit.dispatch.model import Result
from tests.dispatch.email.test_bounces import DOMAIN, PLAIN, Hop, bouncing, make_complaint, make_dsn, report
from tests.dispatch.email.test_email import DEADLINE_S, HI, wait_for_state
from tests.waiting import until

COMPLAINTS = f"complaints@{DOMAIN}"
SUPPRESSED = "/v1/suppressions/email/ann@mail.example"


async def test_what_comes_back_about_a_copy_does_not_reach_the_receiver(tmp_path: Path, runtime: Path) -> None:
    hop = Hop()
    settings = {"dispatch": {"public_url": "https://shop.example"}}
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop, settings) as (both, _):
        assert (await both.api("PUT", "/v1/suppressions/email/left@shop.example", {}))[0] == 200
        copies = {"cc": ["boss@shop.example", "left@shop.example"]}
        status, answer = await both.api("PUT", "/v1/notifications/n1", {**HI, "override": {"email": copies}})
        assert status == 202, answer
        await wait_for_state(both, "sent")
        await until(lambda: len(hop.taken) == 2)
    own, copy = (email.message_from_bytes(raw) for raw in hop.taken)
    assert hop.senders[0].startswith("bounce-") and hop.senders[1] == "news@shop.example"
    assert hop.recipients == ["ann@mail.example", "boss@shop.example"]
    assert own["List-Unsubscribe"] and copy["List-Unsubscribe"] is None
    assert "complaint-" in own["Message-ID"] and "complaint-" not in copy["Message-ID"]


async def test_copies_go_with_one_receiver_only(tmp_path: Path, runtime: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, Hop()) as (both, _):
        await both.api("PUT", "/v1/groups/g", {})
        own = {"email": {"cc": ["boss@shop.example"]}}
        for to in ({"group": "g"}, {"receivers": ["ann"]}):
            status, answer = await both.api("PUT", "/v1/notifications/n1", {**HI, "to": to, "override": own})
            assert (status, answer["code"], answer["pointer"]) == (422, 4300, "/override/email/cc"), answer


async def test_a_late_bounce_spares_the_address_that_was_corrected(tmp_path: Path, runtime: Path) -> None:
    hop = Hop()
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop) as (both, port):
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "sent")
        corrected = {"channel": "email", "value": "ann@right.example"}
        assert (await both.api("PUT", "/v1/receivers/ann/addresses/mail", corrected))[0] == 200
        message_id = str(email.message_from_bytes(hop.taken[0])["Message-ID"])
        await report(port, COMPLAINTS, make_complaint(message_id))
        await report(port, hop.senders[0], make_dsn("failed", "5.1.1", "smtp; 550 <Ann@Mail.Example> is gone"))
        row = await wait_for_state(both, "failed")
        assert row["ref"] == "5.1.1 smtp; 550 <(address)> is gone"
        _, answer = await both.api("GET", "/v1/receivers/ann")
        assert [one["state"] for one in answer["addresses"]] == ["active"]
        assert (await both.api("GET", "/v1/suppressions/email/ann@right.example"))[0] == 404


class Slow(Hop):
    """Keeps its answer until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.came, self.go = asyncio.Event(), asyncio.Event()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.came.set()
        await self.go.wait()
        return await super().handle_DATA(server, session, envelope)


@pytest.mark.parametrize(("action", "state"), [("failed", "failed"), ("delivered", "delivered")])
async def test_a_report_before_the_outcome_is_stored_comes_again(
    tmp_path: Path, runtime: Path, action: str, state: str
) -> None:
    hop = Slow()
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop) as (both, port):
        await both.api("PUT", "/v1/notifications/n1", HI)
        await hop.came.wait()
        with pytest.raises(aiosmtplib.SMTPResponseException) as refused:
            await report(port, hop.senders[0], make_dsn(action, "5.1.1"))
        assert refused.value.code == 451
        hop.go.set()
        await wait_for_state(both, "sent")
        await report(port, hop.senders[0], make_dsn(action, "5.1.1"))
        await wait_for_state(both, state)


async def test_only_feedback_that_asks_for_no_more_mail_is_a_complaint(tmp_path: Path, runtime: Path) -> None:
    hop = Hop()
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop) as (both, port):
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "sent")
        message_id = str(email.message_from_bytes(hop.taken[0])["Message-ID"])
        for kind in (b"not-spam", b"auth-failure", b"virus", b"other", b""):
            await report(port, COMPLAINTS, make_complaint(message_id).replace(b"abuse", kind))
        assert (await both.api("GET", SUPPRESSED))[0] == 404
        await report(port, COMPLAINTS, make_complaint(message_id).replace(b"abuse", b"opt-out"))
        assert (await both.api("GET", SUPPRESSED))[0] == 200


async def test_the_token_of_a_message_id_makes_no_bounces(tmp_path: Path, runtime: Path) -> None:
    hop = Hop()
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop) as (both, port):
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "sent")
        name = str(email.message_from_bytes(hop.taken[0])["Message-ID"]).strip("<>").partition("@")[0]
        for to in (name, name.replace("complaint-", "bounce-")):
            with pytest.raises(aiosmtplib.SMTPRecipientRefused):
                await report(port, f"{to}@{DOMAIN}", make_dsn("failed", "5.1.1"))


def nest(levels: int) -> bytes:
    """Parts within parts, each with a boundary of its own."""
    heads = (f'Content-Type: multipart/mixed; boundary="b{level}"\r\n\r\n--b{level}\r\n' for level in range(levels))
    return "".join(heads).encode() + b"\r\n" + b"\r\n" * 100_000


NESTED = {
    "parts": nest(300),
    "very many parts": nest(2_000),
    "messages": b"Content-Type: message/rfc822\r\n\r\n" * 5_000,
}


@pytest.mark.parametrize("raw", NESTED.values(), ids=NESTED)
def test_what_is_nested_too_deep_is_not_parsed(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: Any, **__: Any) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr(email, "message_from_bytes", parse)
    assert read_report(raw) is None


async def test_what_quotes_no_message_of_ours_is_taken_and_not_parsed(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(raw: bytes, *, has_sender: bool) -> None:
        raise RecursionError("a secret of the parser")

    monkeypatch.setattr("godwit.dispatch.channels.email.bounces.read_report", fail)
    hop = Hop()
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop) as (both, port):
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "sent")
        await report(port, COMPLAINTS, make_complaint("<complaint-aaaaaaaaaaaaaaaaaaaaaaaa@x.y>"))
        with pytest.raises(aiosmtplib.SMTPResponseException) as refused:
            await report(port, hop.senders[0], PLAIN)
        assert refused.value.code == 451 and "secret" not in refused.value.message


@pytest.mark.parametrize("text", ["<Ann@Mail.Example>", '"ann"@mail.example', "rfc822;ann@mail.example:", "ann@mail"])
def test_nothing_like_an_address_stays_in_what_a_mail_server_said(text: str) -> None:
    hidden = hide_addresses(f"550 5.1.1 {text} is unknown\r\nhere")
    assert "ann" not in hidden.lower() and hidden.startswith("550 5.1.1 ") and hidden.endswith(" is unknown here")


@pytest.mark.parametrize(("status", "result"), [("5.1.1", Result.ADDRESS), ("5.1.10", Result.ADDRESS)])
def test_an_answer_about_the_address_ends_it(status: str, result: Result) -> None:
    assert classify(550, f"{status} no") is result


@pytest.mark.parametrize("status", ["5.1.0", "5.1.7", "5.1.8", "5.7.1"])
def test_an_answer_about_the_sender_does_not_end_the_address(status: str) -> None:
    assert classify(550, f"{status} no") is Result.CONTENT


async def test_one_peer_gets_no_more_connections_than_its_share(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounces, "PEER_MAX", 2)
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, Hop()) as (_, port):
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        greetings = [await reader.readline() for reader, _ in opened]
        assert [greeting[:3] for greeting in greetings] == [b"220", b"220", b""]
        for _, writer in opened:
            writer.close()


async def test_a_connection_ends_when_its_time_is_over(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounces, "TOTAL_S", 0.2)
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, Hop()) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await reader.read()).startswith(b"220")
        writer.close()
