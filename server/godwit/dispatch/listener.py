"""A port of dispatch: binds an application to an address, with TLS if it is configured.

Also chooses the routes of a public port: those for receivers, who have no API key.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from ..config.option import Address
from ..errors import ListenFailed
from ..tls.accepting import stop_accepting
from .api.answers import refuse
from .codes import DispatchCode

BACKLOG = 128
_QUIET: dict[str, Any] = {"access_log": None}
_PUBLIC = ("/u/{token}", "/v1/keys.json", "/health/live", "/health/ready")


def choose_public(routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
    """The routes of receivers: inboxes with their tokens, links to unsubscribe, public keys and health."""
    return [route for route in routes if route.path in _PUBLIC or route.path.split("/")[:3] == ["", "v1", "inbox"]]


class Connection(web.RequestHandler):
    """The library's connection. A request that is not HTTP gets a problem with a code, as every other error does."""

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

    def __init__(self, app: web.Application, setting: str, tls: ssl.SSLContext | None) -> None:
        """`setting` is the setting that an error names."""
        self._runner = web.AppRunner(app, access_log=None)
        self._setting, self._tls = setting, tls
        self._server: asyncio.Server | None = None

    async def start(self, wanted: Address) -> Address:
        """Start listening; returns the bound address; raises ListenFailed."""
        await self._runner.setup()
        accept = self._runner.server
        assert accept is not None, "setup makes one"
        try:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(
                lambda: Connection(accept, loop=loop, **_QUIET),
                wanted.host,
                wanted.port,
                reuse_address=True,
                backlog=BACKLOG,
                ssl=self._tls,
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
