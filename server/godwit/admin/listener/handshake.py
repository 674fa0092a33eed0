"""A TLS connection of the admin port during its handshake: counted and limited like any other from the moment it is accepted.

Owns the timeout of the handshake and its entry among the connections. After the handshake, the connection that `make`
creates replaces it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from .connection import AdminConnection, AdminConnections


class Handshake(asyncio.Protocol):
    """One for each accepted connection."""

    def __init__(
        self,
        make: Callable[[], AdminConnection],
        connections: AdminConnections,
        context: ssl.SSLContext,
        timeout_s: float,
    ) -> None:
        self._make, self._connections, self._context, self._timeout_s = make, connections, context, timeout_s
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "uvloop would lose what it reads before the handshake begins"
        self._transport = transport
        transport.pause_reading()  # the first bytes are the handshake's
        self._connections.enter(self)
        self._task = asyncio.get_running_loop().create_task(self._shake(transport))

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.leave(self)

    def force_close(self) -> None:
        """Close it, because its place is needed or the port closes."""
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def _shake(self, transport: asyncio.Transport) -> None:
        made = self._make()
        peer = transport.get_extra_info("peername")
        try:
            encrypted = await asyncio.get_running_loop().start_tls(
                transport, made, self._context, server_side=True, ssl_handshake_timeout=self._timeout_s
            )
        except (OSError, ssl.CertificateError) as error:  # also where it takes too long
            self._connections.note_malformed(str(peer[0]) if peer else None, f"TLS handshake: {type(error).__name__}")
            transport.abort()
            return
        finally:
            self._connections.leave(self)
        if encrypted is not None:  # None: the peer has gone meanwhile
            made.connection_made(encrypted)
