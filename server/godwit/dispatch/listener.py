"""A port of dispatch: binds an application to an address, with TLS if it is configured.

Also chooses the routes of a public port: those for receivers, who have no API key.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable

from aiohttp import web

from ..config.option import Address
from ..errors import ListenFailed

_PUBLIC = ("/u/{token}", "/v1/keys.json", "/health/live", "/health/ready")


def choose_public(routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
    """The routes of receivers: inboxes with their tokens, links to unsubscribe, public keys and health."""
    return [route for route in routes if route.path in _PUBLIC or route.path.split("/")[:3] == ["", "v1", "inbox"]]


class Listener:
    """One port, from `start` to `stop`."""

    def __init__(self, app: web.Application, setting: str, tls: ssl.SSLContext | None) -> None:
        """`setting` is the setting that an error names."""
        self._runner = web.AppRunner(app, access_log=None)
        self._setting, self._tls = setting, tls

    async def start(self, wanted: Address) -> Address:
        """Start listening; returns the bound address; raises ListenFailed."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, wanted.host, wanted.port, reuse_address=True, ssl_context=self._tls)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise ListenFailed(self._setting, str(wanted), error.strerror or str(error)) from error
        host, port = self._runner.addresses[0][:2]
        return Address(host, port)

    async def stop(self) -> None:
        """Stop, after the current requests are answered."""
        await self._runner.cleanup()
