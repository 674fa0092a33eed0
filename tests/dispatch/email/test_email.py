"""E-mail to a real SMTP server: the message and its signature, and what each answer of the server means."""

from __future__ import annotations

import asyncio
import base64
import email
import email.policy
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import dkim
import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.dispatch.conftest import Running, running

DEADLINE_S = 60
HI = {"to": {"receiver": "ann"}, "content": {"title": "Grüße\r\nBcc: x@example.com", "body": "<b>1 & 2</b>"}}


class Server:
    """Answers each step as configured, and keeps the accepted messages."""

    def __init__(self, rcpt: str = "250 OK", data: str = "250 2.0.0 taken") -> None:
        self.rcpt, self.data = rcpt, data
        self.taken: list[bytes] = []
        self.cuts_after_data = False

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, _: Any) -> str:
        envelope.rcpt_tos.append(address)
        return self.rcpt

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.original_content, bytes)
        self.taken.append(envelope.original_content)
        if self.cuts_after_data:
            self.cuts_after_data = False
            assert server.transport is not None
            server.transport.abort()
        return self.data


@asynccontextmanager
async def mailing(
    folder: Path, server: Server, table: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[Running]:
    """Dispatch with this server as its relay, and receiver ann with an e-mail address."""
    loop = asyncio.get_running_loop()
    make: Callable[[], SMTP] = lambda: SMTP(server, hostname="mx.test", loop=loop)  # noqa: E731  # a factory
    listening = await loop.create_server(make, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    mail = {
        "relay": f"127.0.0.1:{port}",
        "security": "none",
        "sender": "news@shop.example",
        "timeout_ms": 2_000,
        **settings,
    }
    whole = {**(table or {}), "dispatch_email": mail, "dispatch_limits": {"sweep_ms": 100}}
    try:
        async with running(folder, whole) as both:
            await both.api("PUT", "/v1/receivers/ann", {})
            body = {"channel": "email", "value": "ann@mail.example"}
            assert (await both.api("PUT", "/v1/receivers/ann/addresses/mail", body))[0] == 200
            yield both
    finally:
        listening.close()
        await listening.wait_closed()


async def wait_for_state(both: Running, *states: str) -> dict[str, Any]:
    """The e-mail's delivery once it is in one of the states."""
    while True:
        _, answer = await both.api("GET", "/v1/notifications/n1/deliveries")
        for row in answer["deliveries"]:
            if row["channel"] == "email" and row["state"] in states:
                return dict(row)


def make_keys(kind: str) -> tuple[bytes, bytes]:
    """A private key (PEM), and the public one as DNS shows it."""
    if kind == "ed25519":
        key: Any = ed25519.Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    else:
        key = rsa.generate_private_key(65537, 2048)
        public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), public


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
async def test_an_e_mail_is_signed_and_no_content_becomes_a_header(tmp_path: Path, runtime: Path, kind: str) -> None:
    private, public = make_keys(kind)
    (tmp_path / "dkim.pem").write_bytes(private)
    server = Server()
    settings = {"dkim_key_file": str(tmp_path / "dkim.pem"), "dkim_selector": "s1"}
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, server, **settings) as both:
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "sent")
        assert row["ref"].startswith("250") and not row["possible_duplicate"]
    [raw] = server.taken
    record = f"v=DKIM1; k={kind}; p={base64.b64encode(public).decode()}".encode()
    asked: list[bytes] = []

    def find_key(name: bytes, timeout: int = 5) -> bytes:
        asked.append(name)
        return record

    assert dkim.verify(raw, dnsfunc=find_key) and asked == [b"s1._domainkey.shop.example."]
    assert not dkim.verify(raw.replace(b"1 &", b"2 &"), dnsfunc=find_key)
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert message["Subject"] == "Grüße  Bcc: x@example.com" and message["Bcc"] is None
    assert message["To"] == "ann@mail.example" and message["From"] == "news@shop.example"
    assert re.fullmatch(r"<dlv_\d+_\d+_\d+_\d+@shop\.example>", message["Message-ID"])
    plain, html = (message.get_body((kind,)).get_content() for kind in ("plain", "html"))  # type: ignore[union-attr]  # both are there
    assert plain.strip() == "<b>1 & 2</b>" and "&lt;b&gt;1 &amp; 2&lt;/b&gt;" in html


@pytest.mark.parametrize(
    ("step", "said", "state", "reason"),
    [
        ("rcpt", "450 4.2.0 greylisted", "deferred", "temporary"),
        ("data", "451 4.3.0 later", "deferred", "temporary"),
        ("data", "452 4.3.1 disk full", "deferred", "temporary"),
        ("rcpt", "421 4.3.2 leaving", "deferred", "temporary"),
        ("rcpt", "550 5.1.1 no such user", "failed", "address"),
        ("rcpt", "550 5.7.1 not wanted", "failed", "content"),
        ("data", "554 5.6.0 no", "failed", "content"),
    ],
)
async def test_what_an_answer_means(
    tmp_path: Path, runtime: Path, step: str, said: str, state: str, reason: str
) -> None:
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, Server(**{step: said})) as both:
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, state)
        assert (row["reason"], row["attempt"]) == (reason, 1) and said[:3] in row["ref"]
        _, answer = await both.api("GET", "/v1/receivers/ann")
        assert answer["addresses"][0]["state"] == ("invalid" if reason == "address" else "active")


async def test_a_connection_lost_after_data_is_in_doubt_and_the_same_message_comes_again(
    tmp_path: Path, runtime: Path
) -> None:
    server = Server()
    server.cuts_after_data = True
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, server) as both:
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "sent")
        assert row["possible_duplicate"] and row["attempt"] == 2
    first, second = (email.message_from_bytes(raw)["Message-ID"] for raw in server.taken)
    assert first == second


async def test_a_relay_that_is_silent_or_away_is_tried_again(tmp_path: Path, runtime: Path) -> None:
    released = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    relay = f"127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, Server(), relay=relay, timeout_ms=300) as both:
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "deferred")
        assert row["reason"] == "temporary" and not row["possible_duplicate"]
    released.set()
    silent.close()
    await silent.wait_closed()


@pytest.mark.parametrize(
    "value", ["a@b", "a b@example.com", "x@example.com\r\nRCPT TO:<y@example.com>", "", "@", "ä@example.com"]
)
async def test_what_is_not_an_address_is_refused(dispatch: Running, value: str) -> None:
    await dispatch.api("PUT", "/v1/receivers/ann", {})
    status, answer = await dispatch.api("PUT", "/v1/receivers/ann/addresses/mail", {"channel": "email", "value": value})
    assert (status, answer["code"]) == (422, 4313)
