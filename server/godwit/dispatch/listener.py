"""A port of dispatch: binds an application to an address, with TLS if it is configured. Its connections are bounded in number,
and in the time for which one may be silent (http_port).

Also chooses the routes of a public port: those for receivers, who have no API key.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ..config.dispatch_limits import DispatchLimits
from ..config.option import Address
from ..errors import ListenFailed
from ..http_port.connection import BoundedConnection
from ..http_port.connections import Connections, share_of_descriptors
from ..tls.accepting import stop_accepting
from .api.answers import refuse
from .codes import DispatchCode

BACKLOG = 128
HANDSHAKE_S = 10.0
DESCRIPTORS_SHARE = 3
"""A port takes at most this fraction of the process's file descriptors."""
_PUBLIC = ("/u/{token}", "/v1/keys.json", "/health/live", "/health/ready")


def choose_public(routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
    """The routes of receivers: inboxes with their tokens, links to unsubscribe, public keys and health."""
    return [route for route in routes if route.path in _PUBLIC or route.path.split("/")[:3] == ["", "v1", "inbox"]]


class Connection(BoundedConnection):
    """A connection of dispatch. A request that is not HTTP gets a problem with a code, as every other error does."""

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        problem = refuse(DispatchCode.REQUEST_INVALID, "the request is not valid HTTP", status=status)
        problem.force_close()
        return problem


class Listener:
    """One port, from `start` to `stop`."""

    def __init__(self, app: web.Application, setting: str, tls: ssl.SSLContext | None, limits: DispatchLimits) -> None:
        """`setting` is the setting that an error names."""
        self._runner = web.AppRunner(app, access_log=None)
        self._setting, self._tls, self._head_s = setting, tls, limits.request_head_ms_max / 1_000
        self.connections = Connections(share_of_descriptors(limits.port_connections_max, DESCRIPTORS_SHARE))
        self._server: asyncio.Server | None = None

    async def start(self, wanted: Address) -> Address:
        """Start listening; returns the bound address; raises ListenFailed."""
        await self._runner.setup()
        server = self._runner.server
        assert server is not None, "setup makes one"

        def make() -> Connection:
            return Connection(server, self.connections, self._head_s)

        try:
            self._server = await asyncio.get_running_loop().create_server(
                make,
                wanted.host,
                wanted.port,
                reuse_address=True,
                backlog=BACKLOG,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else min(HANDSHAKE_S, self._head_s),
            )
        except OSError as error:
            await self._runner.cleanup()
            raise ListenFailed(self._setting, str(wanted), error) from error
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    async def stop(self) -> None:
        """Stop, after the current requests are answered."""
        if self._server is not None:
            await stop_accepting(self._server)
        await self._runner.cleanup()


def count_connections(listeners: Iterable[Listener]) -> dict[str, tuple[str, float]]:
    """The metrics of ports: name → help and value."""
    tables = [listener.connections for listener in listeners]
    evicted = "Connections closed at port_connections_max, because they were silent longest."
    return {
        "godwit_dispatch_connections": ("Open connections of the ports.", sum(map(len, tables))),
        "godwit_dispatch_connections_evicted_total": (evicted, sum(table.evicted for table in tables)),
    }
