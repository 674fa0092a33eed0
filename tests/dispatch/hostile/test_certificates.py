"""Case 45: a counterpart whose certificate is not its own, or that takes no encryption, gets neither a message nor a password."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.authority import Authority
from tests.dispatch.email.test_email import HI, Server, mailing, wait_for_state
from tests.dispatch.test_process import served
from tests.dispatch.test_webhook import put_webhook
from tests.dispatch.test_webhook import wait_for_state as wait_for_webhook

DEADLINE_S = 60


def make_context(folder: Path, trusted: Path, host: str) -> ssl.SSLContext:
    """A server's side, with a certificate for a host by an authority that only `trusted` names."""
    authority = Authority(folder)
    trusted.write_bytes(authority.file.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(host))
    return context


@pytest.mark.parametrize("flaw", ["authority", "host", "none"])
async def test_45_a_webhook_with_a_wrong_certificate_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flaw: str
) -> None:
    """In a process of its own, which reads at its start whom it trusts."""
    taken: list[bytes] = []

    async def take(request: web.Request) -> web.Response:
        taken.append(await request.read())
        return web.Response()

    context = make_context(tmp_path, tmp_path / "trusted.pem", "127.0.0.1" if flaw != "host" else "other.example")
    if flaw != "authority":
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "trusted.pem"))
    app = web.Application()
    app.router.add_post("/hook", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        async with asyncio.timeout(DEADLINE_S), served(tmp_path / "data") as (_, both):
            await put_webhook(both, f"https://127.0.0.1:{runner.addresses[0][1]}/hook")
            await both.api("PUT", "/v1/notifications/n1", {"to": {"receiver": "ann"}, "content": {"title": "hi"}})
            row = await wait_for_webhook(both, "n1", "sent" if flaw == "none" else "deferred")
            assert (row["reason"], row["possible_duplicate"]) == ("" if flaw == "none" else "temporary", False)
            assert bool(taken) == (flaw == "none") and (flaw == "none" or "certificate" in row["ref"].lower())
    finally:
        await runner.cleanup()


class Plain:
    """An SMTP server that notes every line; it offers STARTTLS only with a context."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self.context, self.lines = context, []  # type: tuple[ssl.SSLContext | None, list[bytes]]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mx.test\r\n")
        offers = b"250-mx.test\r\n250-STARTTLS\r\n250 AUTH PLAIN LOGIN\r\n"
        try:
            while line := await reader.readline():
                self.lines.append(line)
                verb = line.split()[0].upper() if line.strip() else b""
                if verb == b"EHLO":
                    writer.write(offers if self.context else offers.replace(b"250-STARTTLS\r\n", b""))
                elif verb == b"STARTTLS" and self.context:
                    writer.write(b"220 go\r\n")
                    await writer.start_tls(self.context)
                elif verb == b"QUIT":
                    writer.write(b"221 bye\r\n")
                    break
                else:
                    writer.write(b"235 in\r\n" if verb == b"AUTH" else b"250 OK\r\n")
        except (OSError, ssl.SSLError):
            pass
        writer.close()


@asynccontextmanager
async def relaying(plain: Plain) -> AsyncIterator[str]:
    server = await asyncio.start_server(plain.serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@pytest.mark.parametrize("flaw", ["authority", "no starttls"])
async def test_45_a_relay_that_is_not_the_one_it_should_be_gets_no_password(
    tmp_path: Path, runtime: Path, flaw: str
) -> None:
    context = make_context(tmp_path, tmp_path / "trusted.pem", "127.0.0.1") if flaw == "authority" else None
    plain = Plain(context)
    (tmp_path / "password").write_text("hunter2")
    login: dict[str, Any] = {"user": "me", "password_file": str(tmp_path / "password"), "security": "starttls"}
    async with (
        asyncio.timeout(DEADLINE_S),
        relaying(plain) as relay,
        mailing(tmp_path / "data", Server(), relay=relay, **login) as both,
    ):
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "deferred")
        assert (row["reason"], row["possible_duplicate"]) == ("temporary", False)
    verbs = {line.split()[0].upper() for line in plain.lines if line.strip()}
    assert verbs <= {b"EHLO", b"STARTTLS", b"QUIT"}, verbs
