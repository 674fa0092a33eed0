"""One connection of the admin port: the limit of their number, and the answer to malformed requests.

Owns the count of malformed requests; the application answers valid ones. The table and the time for a request's head are
those of every port (http_port). So silent connections cannot lock out an operator or use up the journal's file
descriptors.
"""

from __future__ import annotations

import time

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ...http_port.connection import BoundedConnection
from ...http_port.connections import Connections, share_of_descriptors
from ...logs import read_logger
from ...monitoring.metric_specs import ADMIN_FIGURES, MetricSpec

CONNECTIONS_MAX = 64
DESCRIPTORS_SHARE = 16
"""The admin port takes at most this fraction of the process's file descriptors."""
LINE_INTERVAL_S = 1.0
"""Seconds in which at most one log line reports malformed requests."""


class AdminConnections(Connections):
    """The open connections, and the counts of their faults."""

    def __init__(self) -> None:
        super().__init__(share_of_descriptors(CONNECTIONS_MAX, DESCRIPTORS_SHARE))
        self._line_at = float("-inf")
        self.malformed = 0

    def note_malformed(self, address: str | None, why: str) -> None:
        """Count a request that is not HTTP, or a failed handshake; logs at most one a second."""
        self.malformed += 1
        if time.monotonic() - self._line_at >= LINE_INTERVAL_S:
            self._line_at = time.monotonic()
            read_logger().warning("admin_request_malformed", address=address, reason=why, count=self.malformed)

    def close(self) -> None:
        """Close handshakes; the library closes connections."""
        for one in self.list_all():
            if not isinstance(one, AdminConnection):
                self.leave(one)
                one.force_close()

    def count(self) -> dict[MetricSpec, float]:
        """The counts for /metrics."""
        counts = {"admin_requests_malformed": self.malformed, "admin_connections_evicted": self.evicted}
        return {figure: counts[figure.name] for figure in ADMIN_FIGURES}


class AdminConnection(BoundedConnection):
    """A connection whose malformed request is counted, and gets a short answer."""

    def __init__(self, server: web.Server, connections: AdminConnections, head_s: float) -> None:
        super().__init__(server, connections, head_s)
        self._admin_connections = connections

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """A malformed request is the client's error: no traceback is logged."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        self._admin_connections.note_malformed(request.remote, type(exc).__name__)
        answer = web.Response(status=status, text="the request is not valid HTTP\n")
        answer.headers["Server"] = "godwit"  # without one, the library would name itself
        answer.force_close()
        return answer
