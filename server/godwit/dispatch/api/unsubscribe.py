"""The link by which a receiver unsubscribes. Only POST has an effect, so that a scanner that follows links changes nothing (RFC 8058)."""

from __future__ import annotations

import sqlite3

from aiohttp import web

from ..clock import now_ms
from ..stores.sqlite.manage import wishes
from ..stores.sqlite.store import SqliteStore
from ..stores.sqlite.tenants import has_tenant
from ..tokens import Leaving, LeavingAddress, SigningKey

REASON = "unsubscribed"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Unsubscribe</title><body style="font: 1rem system-ui; max-width: 30rem; margin: 4rem auto; padding: 0 1rem">
{content}</body></html>
"""
ASK = '<h1>Unsubscribe</h1><p>You will get no more of these e-mails.</p><form method="post"><button>Unsubscribe</button></form>'
DONE = "<h1>Done</h1><p>You will get no more of these e-mails.</p>"


class UnsubscribeApi:
    """The handlers. A link also works after its receiver was deleted, because the address may be added again."""

    def __init__(self, store: SqliteStore, signing: SigningKey) -> None:
        self._store, self._signing = store, signing

    def list_routes(self) -> list[web.RouteDef]:
        return [web.get("/u/{token}", self.ask, allow_head=False), web.post("/u/{token}", self.unsubscribe)]

    async def ask(self, request: web.Request) -> web.Response:
        self._signing.read_unsubscribe(request.match_info["token"])
        return _show(ASK)

    async def unsubscribe(self, request: web.Request) -> web.Response:
        leaving = self._signing.read_unsubscribe(request.match_info["token"])
        await self._store.writer.run(lambda connection: suppress(connection, leaving))
        return _show(DONE)


def suppress(connection: sqlite3.Connection, leaving: Leaving | LeavingAddress) -> None:
    """Send nothing more of the category to the address. Does nothing if the tenant was deleted."""
    if isinstance(leaving, LeavingAddress):
        row = connection.execute(
            "SELECT tenant, channel, value FROM address JOIN receiver USING (rid) WHERE aid = ?", (leaving.aid,)
        ).fetchone()
        if row is not None:
            tenant, channel, value = row
            wishes.put_suppression(connection, tenant, channel, value, leaving.category, REASON, now_ms())
        return
    if has_tenant(connection, leaving.tenant):
        wishes.put_digest(
            connection, leaving.tenant, leaving.channel, leaving.digest, leaving.category, REASON, now_ms()
        )


def _show(content: str) -> web.Response:
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"}
    return web.Response(text=PAGE.format(content=content), content_type="text/html", headers=headers)
