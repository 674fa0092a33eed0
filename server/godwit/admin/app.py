"""The admin port: health, metrics, statistics as JSON, and the console. Requests that change something need its token
(guard.py).

Owns its routes and the protection against foreign web pages (Host, framing, scripts). Metrics come from the engine and
from monitoring. Not public by default. Every list is paged, so that its cost does not grow with the number of subjects.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

from aiohttp import web

from ..config import Address
from ..config.admin import AdminConfig
from ..config.tls import TlsConfig
from ..errors import ListenFailed
from ..http_port.connection import attend
from ..pages.static_file import Handler
from ..tls.accepting import stop_accepting
from ..tls.context import make_tls_context, renew_context
from . import (
    changes,
    charts,
    configuration,
    connections,
    console,
    health,
    limits,
    metrics,
    node,
    refusals,
    stats,
    subjects,
)
from .changes import Changes
from .guard import Guard
from .hosts import is_host_allowed
from .listener.connection import AdminConnection, AdminConnections
from .listener.handshake import Handshake
from .openapi import route as openapi
from .turn import Turn
from .view import NodeView

REQUEST_BYTES_MAX = 16_384
CLIENT_PATHS = frozenset({"/v1/live", "/v1/messages", "/v1/snapshot", "/v1/stream"})
"""Paths of the client port: a request for one of them was sent to the wrong port."""


class AdminPort:
    """The admin port, from `start` to `stop`."""

    def __init__(self, config: AdminConfig, view: NodeView, guard: Guard, alter: Changes, *, tls: TlsConfig) -> None:
        self._config = config
        self._tls = make_tls_context(tls) if config.tls else None
        self._connections = AdminConnections()
        count_node = view.count
        view = replace(view, count=lambda: {**count_node(), **self._connections.count()})
        self._app = build_app(config, view, guard, alter)
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

    async def start(self) -> Address:
        """Open the port; returns the bound address; raises ListenFailed."""
        wanted = self._config.address
        self._runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=1.0, handle_signals=False)
        await self._runner.setup()
        server, request_s = self._runner.server, self._config.request_ms_max / 1000
        assert server is not None, "setup makes one"

        def make() -> AdminConnection:
            return AdminConnection(server, self._connections, request_s)

        def accept() -> asyncio.Protocol:
            return Handshake(make, self._connections, self._tls, request_s) if self._tls is not None else make()

        try:
            listening = asyncio.get_running_loop().create_server(accept, wanted.host, wanted.port)
            self._server = await listening
        except OSError as error:
            await self._runner.cleanup()
            raise ListenFailed("admin", str(wanted), error) from error
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    def try_certificates(self, tls: TlsConfig) -> None:
        """Check certificates before `certify` uses them; raises ConfigInvalid. A broken file must not replace a part of a
        working configuration.
        """
        if self._tls is not None:
            make_tls_context(tls)

    def certify(self, tls: TlsConfig) -> None:
        """Use these certificates, versions and suites, which `try_certificates` accepted, for new connections."""
        if self._tls is not None:
            renew_context(self._tls, tls)

    async def stop(self) -> None:
        """Closes the port."""
        if self._server is not None:
            await stop_accepting(self._server)
        self._connections.close()
        if self._runner is not None:
            await self._runner.cleanup()


async def _hide_software(_: web.Request, response: web.StreamResponse) -> None:
    """Remove the header that names the software and its version."""
    response.headers.popall("Server", None)


def build_app(config: AdminConfig, view: NodeView, guard: Guard, alter: Changes) -> web.Application:
    """The application with all routes of one node."""

    @web.middleware
    async def protect(request: web.Request, handler: Handler) -> web.StreamResponse:
        is_health = request.path in health.PATHS  # probes use other host names and addresses, or send none
        if not is_health and not is_host_allowed(request.headers.get("Host", ""), config.hosts):
            return refuse(403, "the admin port does not answer to this Host; list its name in admin.hosts")
        if request.path in CLIENT_PATHS:
            return refuse(421, "this is the admin port; clients connect to the client port (client.address)")
        refused = guard.check(request.method, request.path, request.headers, request.remote or "")
        if refused is not None:
            return refuse(refused.status, refused.reason)
        try:
            async with asyncio.timeout(config.request_ms_max / 1000):
                await request.read()
            response = await handler(request)
        except web.HTTPException as error:
            response = refuse(error.status, error.reason)
            if "Allow" in error.headers:
                response.headers["Allow"] = error.headers["Allow"]
        except TimeoutError:
            response = refuse(408, "the rest of the request did not come in time (admin.request_ms_max)")
            response.force_close()
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return response

    app = web.Application(middlewares=[attend, protect], client_max_size=REQUEST_BYTES_MAX)
    app.on_response_prepare.append(_hide_software)
    health.add_routes(app.router, view)
    metrics.add_routes(app.router, view)
    turn = Turn()
    stats.add_routes(app.router, view)
    subjects.add_routes(app.router, view, turn)
    connections.add_routes(app.router, view, turn)
    changes.add_routes(app.router, alter)
    configuration.add_routes(app.router, view)
    limits.add_routes(app.router, view)
    refusals.add_routes(app.router, view)
    node.add_routes(app.router, view, guard)
    charts.add_routes(app, view)
    openapi.add_routes(app.router)
    console.add_routes(app.router, view)
    return app


def refuse(status: int, reason: str) -> web.Response:
    """An error as application/problem+json."""
    body = json.dumps({"status": status, "title": reason})
    return web.Response(status=status, body=body.encode(), content_type="application/problem+json")
