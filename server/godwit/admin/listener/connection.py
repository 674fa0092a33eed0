"""One connection of the admin port: how long it may take, how many there may be, and what is said of nonsense.

Owns deadlines, the bound on connections and the count of malformed requests; what a good request gets is the application's. With TLS a
connection counts from its first byte (handshake.py).
A connection that has not sent a whole head in time is closed, and at the bound the one that waits longest makes room,
so that nobody who opens connections and is silent keeps an operator out or takes the journal's descriptors.
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
"""Of a process that may have few descriptors, the admin port takes at most one in so many."""
LINGER_S = 1.0
"""How long the rest of a body is read that nobody wants."""
LINE_INTERVAL_S = 1.0
"""At most one line in this time says that requests were malformed."""


class Counted(Protocol):
    """What takes one of the places: a connection, or its handshake."""

    is_busy: bool
    """It is being answered."""

    def force_close(self) -> None:
        """Ends it at once."""


class Connections:
    """Those that are open now, the one that waits longest first."""

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
        """One more; past the bound the one that waits longest is closed."""
        if len(self._open) >= self._max:
            oldest = next((one for one in self._open if not one.is_busy), next(iter(self._open)))
            self.evicted += 1
            self.leave(oldest)
            oldest.force_close()
        self._open[connection] = None

    def leave(self, connection: Counted) -> None:
        self._open.pop(connection, None)

    def wait_again(self, connection: AdminConnection) -> None:
        """It has been answered, and waits for its next request from now on."""
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)

    def note_malformed(self, address: str | None, why: str) -> None:
        """Counts a request that is not HTTP, or a handshake that failed, and logs at most one a second."""
        self.malformed += 1
        if time.monotonic() - self._line_at >= LINE_INTERVAL_S:
            self._line_at = time.monotonic()
            read_logger().warning("admin_request_malformed", address=address, reason=why, count=self.malformed)

    def close(self) -> None:
        """Ends what has not sent a request yet; the library ends the others."""
        for one in [one for one in self._open if not isinstance(one, AdminConnection)]:
            self.leave(one)
            one.force_close()

    def count(self) -> dict[MetricSpec, float]:
        """For /metrics."""
        counts = {"admin_requests_malformed": self.malformed, "admin_connections_evicted": self.evicted}
        return {figure: counts[figure.name] for figure in ADMIN_FIGURES}


class AdminConnection(web.RequestHandler):
    """The library's connection under these bounds."""

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
        """A whole head has come."""
        self.is_busy = True

    def end(self) -> None:
        """Its answer is made."""
        self.is_busy = False
        self._connections.wait_again(self)

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """A malformed request is the client's mistake: one short answer, and no traceback."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        self._connections.note_malformed(request.remote, type(exc).__name__)
        answer = web.Response(status=status, text="the request is not valid HTTP\n")
        answer.headers["Server"] = "godwit"  # without one, the library would name itself
        answer.force_close()
        return answer
