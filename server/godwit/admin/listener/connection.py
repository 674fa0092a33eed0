"""One connection of the admin port: its timeouts, the number of connections, and the answer to malformed requests.

Owns the timeouts, the limit of connections and the count of malformed requests; the application answers valid ones. With
TLS a connection counts from its first byte (handshake.py). A connection that has not sent a whole request head in time is
closed. At the limit the one that has waited longest is closed. So silent connections cannot lock out an operator or use
up the journal's file descriptors.
"""

from __future__ import annotations

import asyncio
import resource
import time
from typing import Protocol

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ...logs import read_logger
from ...monitoring.metric_specs import ADMIN_FIGURES, MetricSpec

CONNECTIONS_MAX = 64
DESCRIPTORS_SHARE = 16
"""The admin port takes at most this fraction of the process's file descriptors."""
LINGER_S = 1.0
"""Seconds for which an unwanted request body is read."""
LINE_INTERVAL_S = 1.0
"""Seconds in which at most one log line reports malformed requests."""


class Counted(Protocol):
    """An entry in the table of connections: a connection, or its handshake."""

    is_busy: bool
    """Whether a request is being answered."""

    def force_close(self) -> None:
        """Close it at once."""


class Connections:
    """The open connections, the one that has waited longest first."""

    def __init__(self, connections_max: int | None = None) -> None:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        share = CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else max(4, soft // DESCRIPTORS_SHARE)
        self._max = connections_max or min(CONNECTIONS_MAX, share)
        self._open: dict[Counted, None] = {}
        self._line_at = float("-inf")
        self.malformed = 0
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, connection: Counted) -> None:
        """Add a connection; beyond the limit, the one that has waited longest is closed."""
        if len(self._open) >= self._max:
            oldest = next((one for one in self._open if not one.is_busy), next(iter(self._open)))
            self.evicted += 1
            self.leave(oldest)
            oldest.force_close()
        self._open[connection] = None

    def leave(self, connection: Counted) -> None:
        self._open.pop(connection, None)

    def wait_again(self, connection: AdminConnection) -> None:
        """A request was answered; the connection waits for the next one from now on."""
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)

    def note_malformed(self, address: str | None, why: str) -> None:
        """Count a request that is not HTTP, or a failed handshake; logs at most one a second."""
        self.malformed += 1
        if time.monotonic() - self._line_at >= LINE_INTERVAL_S:
            self._line_at = time.monotonic()
            read_logger().warning("admin_request_malformed", address=address, reason=why, count=self.malformed)

    def close(self) -> None:
        """Close connections that have not sent a request; the library closes the others."""
        for one in [one for one in self._open if not isinstance(one, AdminConnection)]:
            self.leave(one)
            one.force_close()

    def count(self) -> dict[MetricSpec, float]:
        """The counts for /metrics."""
        counts = {"admin_requests_malformed": self.malformed, "admin_connections_evicted": self.evicted}
        return {figure: counts[figure.name] for figure in ADMIN_FIGURES}


class AdminConnection(web.RequestHandler):
    """The library's connection with these limits."""

    def __init__(self, server: web.Server, connections: Connections, request_s: float) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=request_s,  # also the time for a head, counted from the connection's begin
            lingering_time=LINGER_S,
        )
        self._connections = connections
        self.is_busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._connections.enter(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.leave(self)
        super().connection_lost(exc)

    def begin(self) -> None:
        """A whole request head was received."""
        self.is_busy = True

    def end(self) -> None:
        """The answer is complete."""
        self.is_busy = False
        self._connections.wait_again(self)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """A malformed request is the client's error: send a short answer, log no traceback."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        self._connections.note_malformed(request.remote, type(exc).__name__)
        answer = web.Response(status=status, text="the request is not valid HTTP\n")
        answer.headers["Server"] = "godwit"  # without one, the library would name itself
        answer.force_close()
        return answer
