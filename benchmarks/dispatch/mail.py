"""E-mail, signed with DKIM, to a real SMTP server (aiosmtpd) in the generator's process."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from .server import Options, Served, served
from .webhooks import make_group, wait_sent

RECEIVERS = 2_000


class Mailbox:
    """Takes every e-mail; counts them, and those that are signed."""

    def __init__(self, wanted: int) -> None:
        self._wanted, self.signed = wanted, 0
        self.count = 0
        self.done = asyncio.Event()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.original_content, bytes)
        self.count += 1
        self.signed += b"DKIM-Signature:" in envelope.original_content
        if self.count >= self._wanted:
            self.done.set()
        return "250 2.0.0 taken"


async def measure(options: Options) -> dict[str, Any]:
    receivers = options.receivers or RECEIVERS
    mailbox, loop = Mailbox(receivers), asyncio.get_running_loop()
    make: Callable[[], SMTP] = lambda: SMTP(mailbox, hostname="mx.test", loop=loop)  # noqa: E731  # a factory
    listening = await loop.create_server(make, "127.0.0.1", 0)
    settings = {
        "relay": f"127.0.0.1:{listening.sockets[0].getsockname()[1]}",
        "security": "none",
        "sender": "news@shop.example",
        "dkim_key_file": str(write_key(options.folder / "dkim.pem")),
    }
    try:
        async with served(
            options.folder, [f"dispatch_email.{name}={value}" for name, value in settings.items()]
        ) as server:
            await asyncio.to_thread(register, server, receivers)
            sent = await send(server, mailbox, receivers)
    finally:
        listening.close()
    assert mailbox.count == mailbox.signed == receivers
    return {"receivers": receivers, **sent}


def write_key(file: Path) -> Path:
    key = ed25519.Ed25519PrivateKey.generate()
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return file


def register(server: Served, receivers: int) -> None:
    """Receivers with an e-mail address each, and a group of all."""
    lines = []
    for number in range(receivers):
        address = {"id": "mail", "channel": "email", "value": f"user{number}@mail.example"}
        lines.append(json.dumps({"id": f"user:{number}", "addresses": [address]}))
    assert server.call("POST", "/v1/receivers/import", "\n".join(lines).encode())["rejected_count"] == 0
    make_group(server, receivers)


async def send(server: Served, mailbox: Mailbox, receivers: int) -> dict[str, float]:
    """One send; from its request until every mail has arrived and its outcome is stored."""
    body = json.dumps({"to": {"group": "all"}, "content": {"title": "news"}, "policy": {"first": ["email"]}}).encode()
    began, cpu_s = time.perf_counter(), server.cpu_s()
    await asyncio.to_thread(server.call, "PUT", "/v1/notifications/all", body)
    await mailbox.done.wait()
    await wait_sent(server, "all", "email", receivers)
    took_s = time.perf_counter() - began
    return {"mails_per_s": receivers / took_s, "cpu_us_per_mail": (server.cpu_s() - cpu_s) / receivers * 1e6}
