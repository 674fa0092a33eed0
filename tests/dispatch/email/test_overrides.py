"""The e-mail parts of a request: subject, parts, copies, headers and attachments; none can forge a header."""

from __future__ import annotations

import asyncio
import base64
import email
import email.policy
import json
from pathlib import Path
from typing import Any

import dkim
import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from godwit.dispatch.channels.email.message import make_draft, make_message
from godwit.dispatch.channels.letter import REMEMBERED_BYTES_MAX, Letter, Letters
from godwit.dispatch.model import DeliveryKey, Shipment, Target
from tests.dispatch.conftest import Running
from tests.dispatch.email.test_email import DEADLINE_S, Server, mailing, make_keys, wait_for_state

FILE = base64.b64encode(b"\x00\x01 a file\r\n" * 1_000).decode()
OWN: dict[str, Any] = {
    "subject": "Invoice\r\nBcc: x@example.com",
    "html": "<p>yours</p>",
    "cc": ["boss@shop.example", "gone@shop.example"],
    "reply_to": "help@shop.example",
    "headers": {"X-Campaign": "autumn", "List-Id": "<news.shop.example>"},
    "attachments": [{"name": "Rechnung März.pdf", "type": "application/pdf", "content": FILE}],
}


class Copying(Server):
    """Refuses one of the copies."""

    def __init__(self) -> None:
        super().__init__()
        self.recipients: list[list[str]] = []

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, _: Any) -> str:
        if address.startswith("gone"):
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        self.recipients.append(list(envelope.rcpt_tos))
        return await super().handle_DATA(server, session, envelope)


def send(both: Running, own: dict[str, Any], **more: Any) -> Any:
    body = {"to": {"receiver": "ann"}, "content": {"title": "hi", "body": "text"}, "override": {"email": own}, **more}
    return both.api("PUT", "/v1/notifications/n1", body)


async def wait_until_settled(both: Running) -> dict[str, int]:
    """The counts of e-mail once nothing is left to do."""
    while (answer := (await both.api("GET", "/v1/notifications/n1"))[1])["state"] != "settled":
        pass
    return dict(answer["counts"]["email"])


async def test_an_email_has_what_its_request_gives_it(tmp_path: Path, runtime: Path) -> None:
    private, public = make_keys("ed25519")
    (tmp_path / "dkim.pem").write_bytes(private)
    server = Copying()
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, server, dkim_key_file=str(tmp_path / "dkim.pem")) as both:
        assert (await send(both, OWN))[0] == 202
        assert await wait_until_settled(both) == {"sent": 2, "failed": 1}
    assert server.recipients == [["ann@mail.example"], ["boss@shop.example"]]
    message = email.message_from_bytes(server.taken[0], policy=email.policy.default)
    assert message["Subject"] == "Invoice  Bcc: x@example.com" and message["Bcc"] is None
    assert message["Cc"] == "boss@shop.example, gone@shop.example" and message["Reply-To"] == "help@shop.example"
    assert (message["X-Campaign"], message["List-Id"]) == ("autumn", "<news.shop.example>")
    assert message.get_body(("plain",)).get_content().strip() == "text"  # type: ignore[union-attr]  # it is there
    assert message.get_body(("html",)).get_content().strip() == "<p>yours</p>"  # type: ignore[union-attr]  # it is there
    [attached] = message.iter_attachments()
    assert (attached.get_filename(), attached.get_content_type()) == ("Rechnung März.pdf", "application/pdf")
    assert attached.get_content() == base64.b64decode(FILE)
    record = f"v=DKIM1; k=ed25519; p={base64.b64encode(public).decode()}".encode()
    assert dkim.verify(server.taken[0], dnsfunc=lambda name, timeout=5: record)
    assert not dkim.verify(server.taken[0].replace(b"help@", b"evil@"), dnsfunc=lambda name, timeout=5: record)


async def test_what_a_request_gives_goes_before_its_template(tmp_path: Path, runtime: Path) -> None:
    server = Server()
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, server) as both:
        await both.api("PUT", "/v1/receivers/ann", {"locale": "de"})
        parts = {"title": "Hi", "email": {"subject": "English", "text": "from the template"}}
        await both.api("PUT", "/v1/templates/t", {"locales": {"default": parts, "de": {"title": "Hallo"}}})
        assert (await send(both, {"subject": "Mine"}, content={"template": "t"}))[0] == 202
        await wait_for_state(both, "sent")
    message = email.message_from_bytes(server.taken[0], policy=email.policy.default)
    assert message["Subject"] == "Mine"


@pytest.mark.parametrize(
    "name",
    [
        "😊.txt",
        "Ɣ------" * 20 + ".pdf",
        'a"b;c.txt',
        "Report 1. 9. 2016 0:00:00.xlsx",
        "x" * 200,
        "שלום.docx",
        "a%20b'c.txt",
    ],
)
def test_a_file_keeps_its_name(name: str) -> None:
    own = json.dumps({"attachments": [{"name": name, "content": FILE, "type": "text/plain"}]}).encode()
    shipment = Shipment(DeliveryKey(1, 2, "email", 3), "t", Target(2, 3, "ann", "ann@example.com"), 1, 10)
    raw = make_message(shipment, Letter("n", 0, b'{"title": "x"}', own), "news@shop.example")
    [attached] = email.message_from_bytes(raw, policy=email.policy.default).iter_attachments()
    assert attached.get_filename() == name and attached.get_payload(decode=True) == base64.b64decode(FILE)
    assert max(map(len, raw.split(b"\r\n"))) <= 998


def test_the_emails_of_a_letter_share_what_does_not_name_a_receiver() -> None:
    letter = Letter(
        "n", 0, b'{"title": "x", "body": "=_0_ --=_0_"}', json.dumps({"attachments": OWN["attachments"]}).encode()
    )
    read = []
    misses = make_draft.cache_info().misses
    for rid in range(3):
        target = Target(rid, 3, "ann", f"ann{rid}@example.com")
        raw = make_message(Shipment(DeliveryKey(1, rid, "email", 3), "t", target, 1, 10), letter, "news@shop.example")
        read.append(email.message_from_bytes(raw, policy=email.policy.default))
    assert make_draft.cache_info().misses == misses + 1
    assert [message["To"] for message in read] == [f"ann{rid}@example.com" for rid in range(3)]
    assert len({message["Message-ID"] for message in read}) == 3
    for message in read:
        assert [part.get_content_type() for part in message.walk()] == [
            *("multipart/mixed", "multipart/alternative", "text/plain", "text/html", "application/pdf")
        ]
        assert message.get_body(("plain",)).get_content() == "=_0_ --=_0_\r\n"


BIG = base64.b64encode(b"x" * 360_000).decode()


@pytest.mark.parametrize(
    ("own", "code", "pointer"),
    [
        ({"cc": ["a@b"]}, 4300, "/override/email/cc/0"),
        ({"cc": ["a@b.c\r\nRCPT TO:<x@y.z>"]}, 4300, "/override/email/cc/0"),
        ({"reply_to": "nobody"}, 4300, "/override/email/reply_to"),
        ({"cc": ["a@b.example"] * 11}, 4300, "/override/email/cc"),
        ({"headers": {"X-A": "b\r\nBcc: x@y.z"}}, 4300, "/override/email/headers"),
        ({"headers": {"Bcc": "x@y.z"}}, 4300, None),
        ({"headers": {"From": "x@y.z"}}, 4300, None),
        ({"attachments": [{"name": "a", "content": "abc"}]}, 4300, "/override/email/attachments/0/content"),
        ({"attachments": [{"name": "a/b", "content": ""}]}, 4300, "/override/email/attachments/0/name"),
        ({"attachments": [{"name": "a\u202egpj.exe", "content": ""}]}, 4300, "/override/email/attachments/0/name"),
        (
            {"attachments": [{"name": "a", "content": "", "type": "message/rfc822"}]},
            4300,
            "/override/email/attachments/0/type",
        ),
        ({"attachments": [{"name": "a", "content": BIG}, {"name": "b", "content": BIG}]}, 4301, None),
        ({"from": "x@y.z"}, 4300, None),
    ],
)
async def test_what_cannot_be_part_of_an_email_is_refused(
    dispatch: Running, own: dict[str, Any], code: int, pointer: str | None
) -> None:
    await dispatch.api("PUT", "/v1/receivers/ann", {})
    status, answer = await send(dispatch, own)
    assert status in (400, 413, 422) and answer["code"] == code, answer
    assert pointer is None or answer.get("pointer") == pointer, answer


async def test_letters_with_large_attachments_are_remembered_within_bounds() -> None:
    async def read(nid: int, locale: str, rid: int) -> Letter:
        return Letter(str(nid), 0, b"{}", b"x" * 1_000_000)

    letters = Letters(read)
    for nid in range(REMEMBERED_BYTES_MAX // 1_000_000 + 30):
        await letters.find(Shipment(DeliveryKey(nid, 1, "email", 1), "t", Target(1, 1), 1, 1))
    assert letters.remembered_bytes <= REMEMBERED_BYTES_MAX
