"""The role `bounce`: an SMTP server that accepts reports about e-mails of this dispatch, and nothing else.

Owns the listener. It never sends mail, so no two servers can bounce to each other through it. A report is answered with 250 only after its
effect is stored. Messages are bounded in size, connections in number and time.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope, Session

from ....errors import ListenFailed
from ....logs import read_logger
from ....tls.accepting import stop_accepting
from ...pure.verp import BOUNCE, COMPLAINT, COMPLAINTS, MakeMac, Token, read_token
from .reports import Action, Report, find_tokens, read_report

MESSAGE_BYTES_MAX = 2_097_152
"""A larger message is answered with 552. A bounce may contain the original: 1 MiB with attachments, encoded."""
CONNECTIONS_MAX = 100
PEER_MAX = 20
"""Connections of one peer."""
TIMEOUT_S = 60
"""Seconds between two commands."""
TOTAL_S = 600
"""Seconds for a whole connection, so that one that sends a byte now and then ends too."""
PARSERS_MAX = 1
_TAG = re.compile(r"\Aprvs=[0-9a-z]{4,20}=")
"""A prefix that a relay added to the envelope sender (BATV) and did not remove from the bounce."""
Apply = Callable[[Token, Report], Awaitable[bool]]
"""Stores what a report says about a delivery. False if the outcome of the attempt is not stored yet: the sender must repeat
the report.
"""
LATER = "451 4.3.0 try again later"
DONE = "250 2.0.0 taken"


class BounceServer:
    """Listens from `start` to `stop`."""

    def __init__(self, address: str, domain: str, make_mac: MakeMac, apply: Apply) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        self._domain, self._make_mac, self._apply = domain.lower(), make_mac, apply
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.BaseTransport] = set()
        self._peers: Counter[str] = Counter()
        self._parsing = asyncio.Semaphore(PARSERS_MAX)

    async def start(self) -> int:
        """The port it listens on. Raises ListenFailed."""
        try:
            self._server = await asyncio.get_running_loop().create_server(self._open, self._host, self._port)
        except OSError as error:
            where = f"{self._host}:{self._port}"
            raise ListenFailed("dispatch_email.bounce_address", where, error) from error
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """End all connections; reports without an answer will be sent again."""
        if self._server is not None:
            await stop_accepting(self._server)
            for transport in list(self._connections):
                transport.close()

    def _open(self) -> SMTP:
        return _Connection(
            self,
            hostname=self._domain,
            ident="Godwit",
            data_size_limit=MESSAGE_BYTES_MAX,
            timeout=TIMEOUT_S,
            loop=asyncio.get_running_loop(),
        )

    def enter(self, transport: asyncio.BaseTransport) -> bool:
        """Register a connection; false if there are too many."""
        peer = _find_peer(transport)
        is_allowed = len(self._connections) < CONNECTIONS_MAX and self._peers[peer] < PEER_MAX
        self._connections.add(transport)
        self._peers[peer] += 1
        return is_allowed

    def leave(self, transport: asyncio.BaseTransport) -> None:
        """A connection ended."""
        if transport not in self._connections:
            return
        self._connections.discard(transport)
        peer = _find_peer(transport)
        self._peers[peer] -= 1
        if self._peers[peer] <= 0:
            del self._peers[peer]

    async def handle_RCPT(self, server: SMTP, session: Session, envelope: Envelope, address: str, _: Any) -> str:
        name, _, domain = address.rpartition("@")
        is_ours = domain.lower() == self._domain
        if not is_ours or not (name.lower() == COMPLAINTS or self._find(name) is not None):
            return "550 5.1.1 no such address"
        if envelope.rcpt_tos:
            return "452 4.5.3 one recipient at a time"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = envelope.content
        raw = content if isinstance(content, bytes) else (content or "").encode()
        name = envelope.rcpt_tos[0].rpartition("@")[0]
        token = self._find(name)
        if token is None and not any(self._find_quoted(found) for found in find_tokens(raw)):
            return DONE  # the address is public: a mail that does not quote one of our messages is not parsed
        async with self._parsing:
            has_sender = envelope.mail_from not in (None, "", "<>")
            report = await asyncio.to_thread(read_report, raw, has_sender=has_sender)
        if report is None or report.action is Action.DELAYED:
            return DONE
        token = token or self._find_quoted(report.token)
        if token is None:
            return DONE
        return DONE if await self._apply(token, report) else LATER

    async def handle_exception(self, error: Exception) -> str:
        """The answer to any error: the report must be sent again. It does not show the reason."""
        read_logger().error("dispatch_bounce_not_stored", reason=f"{type(error).__name__}: {error!s:.200}")
        return LATER

    def _find(self, name: str) -> Token | None:
        plain = _TAG.sub("", name.lower())
        return read_token(plain[len(BOUNCE) :], self._make_mac) if plain.startswith(BOUNCE) else None

    def _find_quoted(self, token: str) -> Token | None:
        """The token in a message that a complaint quotes: from its Message-ID or envelope."""
        return read_token(token, self._make_mac, COMPLAINT) or read_token(token, self._make_mac)


def _find_peer(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if peer else ""


class _Connection(SMTP):
    """One connection, counted."""

    def __init__(self, bounces: BounceServer, **settings: Any) -> None:
        super().__init__(bounces, **settings)
        self._bounces = bounces
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._entered = transport
        if self._bounces.enter(transport):
            super().connection_made(transport)
            self._end = asyncio.get_running_loop().call_later(TOTAL_S, transport.close)
        else:
            transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._bounces.leave(self._entered)
        if self._end is not None:
            self._end.cancel()
        if self.session is not None:
            super().connection_lost(error)
