"""Bounces and complaints: from a real mail server (OpenSMTPD), and what reports of every kind, true and forged, change."""

from __future__ import annotations

import asyncio
import contextlib
import email
import hashlib
import os
import random
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiosmtplib
import pytest
from aiosmtpd.smtp import SMTP

from godwit.children import follow_parent
from godwit.dispatch.channels.email.bounces import MESSAGE_BYTES_MAX
from godwit.dispatch.channels.email.reports import Action, read_report
from godwit.dispatch.model import DeliveryKey
from godwit.dispatch.pure.verp import COMPLAINT, Token, make_check, make_token, read_token
from tests.dispatch.conftest import Running
from tests.dispatch.email.test_email import DEADLINE_S, HI, Server, mailing, wait_for_state

LACKS_SMTPD = shutil.which("smtpd") is None or os.getuid() != 0
DOMAIN = "bounces.shop.example"


def free_port() -> int:
    """Below the ports that the kernel gives out: no other test is given it before it is used."""
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            port = random.randrange(20_000, 32_000)
            probe.bind(("127.0.0.1", port))
            return port


class Hop(Server):
    """Keeps the envelope's sender, too."""

    def __init__(self, **answers: str) -> None:
        super().__init__(**answers)
        self.senders: list[str] = []
        self.recipients: list[str] = []

    async def handle_MAIL(self, server: SMTP, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        envelope.mail_from = address
        self.senders.append(address)
        return "250 OK"

    async def handle_RCPT(self, server: SMTP, session: Any, envelope: Any, address: str, _: Any) -> str:
        self.recipients.append(address)
        return await super().handle_RCPT(server, session, envelope, address, _)


@asynccontextmanager
async def bouncing(
    folder: Path, server: Hop, table: dict[str, Any] | None = None
) -> AsyncIterator[tuple[Running, int]]:
    """Dispatch with a relay and the role `bounce`, and its port."""
    port = free_port()
    settings = {"bounce_address": f"127.0.0.1:{port}", "bounce_domain": DOMAIN}
    async with mailing(folder, server, table, **settings) as both:
        yield both, port


async def report(port: int, to: str, message: bytes, sender: str = "") -> None:
    async with aiosmtplib.SMTP(hostname="127.0.0.1", port=port, start_tls=False) as client:
        await client.mail(sender)
        await client.rcpt(to)
        await client.data(message)


def make_dsn(action: str, status: str, diagnostic: str = "smtp; 550 5.1.1 no such user") -> bytes:
    return (
        "From: MAILER-DAEMON@mx.test\r\nSubject: Delivery report\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nIt did not arrive.\r\n"
        "--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.test\r\n\r\n"
        f"Final-Recipient: rfc822; ann@mail.example\r\nAction: {action}\r\nStatus: {status}\r\n"
        f"Diagnostic-Code: {diagnostic}\r\n\r\n--b--\r\n"
    ).encode()


def make_long(size: int) -> bytes:
    """A report that quotes a message and has this many bytes."""
    report = make_dsn("failed", "5.1.1")
    lines = b"y" * 998 + b"\r\n"
    return (report + lines * (size // 1_000))[: size - 2] + b"\r\n"


def make_complaint(message_id: str) -> bytes:
    return (
        "From: fbl@mx.test\r\nMIME-Version: 1.0\r\n"
        'Content-Type: multipart/report; report-type=feedback-report; boundary="b"\r\n\r\n'
        "--b\r\nContent-Type: text/plain\r\n\r\nA complaint.\r\n"
        "--b\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nVersion: 1\r\n\r\n"
        f"--b\r\nContent-Type: message/rfc822\r\n\r\nMessage-ID: {message_id}\r\nSubject: x\r\n\r\nhi\r\n--b--\r\n"
    ).encode()


@pytest.mark.parametrize(
    ("status", "is_gone"),
    [
        *(("5.1.1", True), ("5.1.2", True), ("5.1.10", True), ("5.2.1", True), ("5.0.0", True)),
        *(("5.1.0", False), ("5.1.7", False), ("5.1.8", False), ("5.2.2", False), ("5.7.1", False)),
    ],
)
async def test_a_bounce_fails_its_delivery_and_ends_a_bad_address(
    tmp_path: Path, runtime: Path, status: str, is_gone: bool
) -> None:
    hop = Hop()
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop) as (both, port):
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "sent")
        diagnostic = "smtp; 550 5.1.1 <ann@mail.example> no such user" if status == "5.0.0" else "smtp; 550 no"
        for _ in range(2):  # reports are repeated
            await report(port, hop.senders[0].upper(), make_dsn("failed", status, diagnostic))
        row = await wait_for_state(both, "failed")
        assert (row["reason"], row["attempt"]) == ("bounced", 1) and "ann@" not in row["ref"]
        _, answer = await both.api("GET", "/v1/receivers/ann")
        assert answer["addresses"][0]["state"] == ("invalid" if is_gone else "active")
        status_code, _ = await both.api("GET", "/v1/suppressions/email/ann@mail.example")
        assert status_code == (200 if is_gone else 404)
        _, events = await both.api("GET", "/v1/events?types=delivery.failed")
        assert [event["reason"] for event in events["events"]] == ["bounced"]


async def test_delays_and_other_mail_change_nothing_and_a_delivery_is_confirmed(tmp_path: Path, runtime: Path) -> None:
    hop = Hop()
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop) as (both, port):
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "sent")
        await report(port, hop.senders[0], make_dsn("delayed", "4.4.1"))
        await report(
            port, hop.senders[0], b"From: ann@mail.example\r\nSubject: out of office\r\n\r\nback soon\r\n", "a@b.c"
        )
        assert (await wait_for_state(both, "sent"))["attempt"] == 1
        await report(port, hop.senders[0], make_dsn("delivered", "2.0.0"))
        await wait_for_state(both, "delivered")
        await report(port, hop.senders[0], make_dsn("failed", "5.1.1"))
        await wait_for_state(both, "delivered")


PLAIN = b"""From: mailer@mx.test\r\nSubject: failure notice\r\n\r\nYour message did not reach its recipient:\r\n
   <ann@mail.example>\r\n   Remote server replied: 550 5.1.1 no such mailbox (S2017062302)\r\n"""


async def test_a_bounce_in_plain_text_counts_where_it_has_no_sender(tmp_path: Path, runtime: Path) -> None:
    hop = Hop()
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop) as (both, port):
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "sent")
        await report(port, hop.senders[0], PLAIN, "ann@mail.example")
        await report(port, hop.senders[0], b"Auto-Submitted: auto-replied\r\n" + PLAIN)
        await report(port, hop.senders[0], PLAIN.replace(b"550 5.1.1", b"451 4.3.0"))
        assert (await wait_for_state(both, "sent"))["reason"] == ""
        await report(port, f"prvs=190694bd6d={hop.senders[0]}", PLAIN)
        row = await wait_for_state(both, "failed")
        assert row["reason"] == "bounced" and row["ref"].startswith("5.1.1 550 5.1.1 no such mailbox")


async def test_a_complaint_ends_all_mail_to_the_address_once(tmp_path: Path, runtime: Path) -> None:
    hop = Hop()
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop) as (both, port):
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "sent")
        message_id = str(email.message_from_bytes(hop.taken[0])["Message-ID"])
        forged = message_id.replace("complaint-", "complaint-aa")
        await report(port, f"complaints@{DOMAIN}", make_complaint(forged))
        assert (await both.api("GET", "/v1/suppressions/email/ann@mail.example"))[0] == 404
        for _ in range(2):
            await report(port, f"complaints@{DOMAIN}", make_complaint(message_id))
        _, answer = await both.api("GET", "/v1/suppressions/email/ann@mail.example")
        assert [(one["category"], one["reason"]) for one in answer["suppressions"]] == [("*", "complained")]
        _, events = await both.api("GET", "/v1/events?types=delivery.complained")
        assert len(events["events"]) == 1


async def test_38_loops_floods_and_forged_addresses_change_nothing(tmp_path: Path, runtime: Path) -> None:
    hop = Hop()
    async with asyncio.timeout(DEADLINE_S), bouncing(tmp_path, hop) as (both, port):
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "sent")
        for to in ("bounce-aaaaaaaaaaaaaaaaaaaaaaaa@" + DOMAIN, "bounce-@" + DOMAIN, "x@" + DOMAIN, "ann@mail.example"):
            with pytest.raises(aiosmtplib.SMTPRecipientRefused):
                await report(port, to, make_dsn("failed", "5.1.1"))
        with pytest.raises(aiosmtplib.SMTPResponseException) as refused:
            await report(port, hop.senders[0], make_dsn("failed", "5.1.1") + (b"\r\n" + b"y" * 70) * 700_000)
        assert refused.value.code == 552
        with pytest.raises(aiosmtplib.SMTPResponseException) as refused:
            await report(port, hop.senders[0], make_long(MESSAGE_BYTES_MAX + 1))
        assert refused.value.code == 552
        assert (await wait_for_state(both, "sent"))["reason"] == "", "what was refused changed nothing"
        await report(port, hop.senders[0], make_long(MESSAGE_BYTES_MAX))
        await wait_for_state(both, "failed")
        # Our own report, sent again and again: it is taken, and nothing is sent back.
        for _ in range(20):
            await report(port, hop.senders[0], make_dsn("failed", "5.1.1"), hop.senders[0])
        assert len(hop.taken) == 1
        await wait_for_state(both, "failed")


def test_a_token_names_its_delivery_and_nobody_makes_another() -> None:
    def mac(content: bytes) -> bytes:
        return hashlib.sha256(content).digest()[:10]

    for key in (DeliveryKey(1, 2, "email", 3), DeliveryKey(2**40, 2**62, "email", 2**53)):
        token = make_token(key, "ann@mail.example", mac)
        found = Token(key, make_check("Ann@mail.example"))
        assert read_token(token, mac) == found and len("bounce-" + token) <= 64
        assert read_token(token, mac, COMPLAINT) is None
        quoted = make_token(key, "ann@mail.example", mac, COMPLAINT)
        assert read_token(quoted, mac, COMPLAINT) == found and read_token(quoted, mac) is None
        for at in range(len(token)):
            changed = token[:at] + ("a" if token[at] != "a" else "b") + token[at + 1 :]
            assert read_token(changed, mac) is None
    for wrong in ("", "a", "1", "é", "a" * 300):
        assert read_token(wrong, mac) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\r\n\r\n",
        b"Content-Type: multipart/report\r\n\r\n",
        b'Content-Type: multipart/report; boundary="b"\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n\x00\xff',
        b'Content-Type: multipart/report; boundary="b"\r\n\r\n'
        + b"--b\r\nContent-Type: text/plain\r\n\r\n\r\n" * 1_000,
        make_dsn("exploded", "5.1.1"),
    ],
)
def test_what_is_no_report_is_none(raw: bytes) -> None:
    assert read_report(raw) is None


def test_a_report_without_a_precise_status_takes_it_from_the_diagnostic() -> None:
    found = read_report(make_dsn("failed", "5.0.0", "smtp; 550 5.1.1 gone"))
    assert found is not None and (found.action, found.status) == (Action.FAILED, "5.1.1")


@pytest.mark.skipif(LACKS_SMTPD, reason="needs OpenSMTPD (apt install opensmtpd) and root")
async def test_a_bounce_of_a_real_mail_server_comes_back(tmp_path: Path, runtime: Path) -> None:
    """Dispatch → OpenSMTPD → a next hop that refuses with 550 → a DSN of OpenSMTPD to the address of the delivery."""
    hop, port, bounce_port, relay_port = Hop(rcpt="550 5.1.1 no such user"), free_port(), free_port(), free_port()
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: SMTP(hop, hostname="mx.test", loop=loop), "127.0.0.1", port)
    (tmp_path / "smtpd.conf").write_text(
        f"listen on 127.0.0.1 port {relay_port}\n"
        f'action "out" relay host smtp://127.0.0.1:{port}\n'
        f'action "bounces" relay host smtp://127.0.0.1:{bounce_port}\n'
        f'match from any for domain "{DOMAIN}" action "bounces"\n'
        'match from any for any action "out"\n'
    )
    log = (tmp_path / "smtpd.log").open("wb")
    smtpd = await asyncio.create_subprocess_exec(
        *("smtpd", "-d", "-f", str(tmp_path / "smtpd.conf")),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=log,
        preexec_fn=follow_parent(),
    )
    settings = {
        "bounce_address": f"127.0.0.1:{bounce_port}",
        "bounce_domain": DOMAIN,
        "relay": f"127.0.0.1:{relay_port}",
    }
    try:
        async with asyncio.timeout(DEADLINE_S), mailing(tmp_path / "data", Hop(), **settings) as both:
            await listens(relay_port)
            await both.api("PUT", "/v1/notifications/n1", HI)
            row = await wait_for_state(both, "failed")
            assert row["reason"] == "bounced" and "5.1.1" in row["ref"], (row, (tmp_path / "smtpd.log").read_text())
            _, answer = await both.api("GET", "/v1/receivers/ann")
            assert answer["addresses"][0]["state"] == "invalid"
    finally:
        smtpd.terminate()
        await smtpd.wait()
        log.close()
        listening.close()
        await listening.wait_closed()


async def listens(port: int) -> None:
    """Returns once a connection is taken: nothing announces that it listens."""
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
