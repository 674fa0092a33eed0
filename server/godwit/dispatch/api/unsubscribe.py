"""The link with which a receiver unsubscribes: only POST acts, so that a scanner that follows links changes nothing (RFC 8058)."""

from __future__ import annotations

import sqlite3

from aiohttp import web

from ..clock import now_ms
from ..stores.sqlite.manage import wishes
from ..stores.sqlite.store import SqliteStore
from ..tokens import SigningKey

REASON = "unsubscribed"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Unsubscribe</title><body style="font: 1rem system-ui; max-width: 30rem; margin: 4rem auto; padding: 0 1rem">
{content}</body></html>
"""
ASK = '<h1>Unsubscribe</h1><p>You will get no more of these e-mails.</p><form method="post"><button>Unsubscribe</button></form>'
DONE = "<h1>Done</h1><p>You will get no more of these e-mails.</p>"


class UnsubscribeApi:
    """The handlers. An address that is gone is unsubscribed already."""

    def __init__(self, store: SqliteStore, signing: SigningKey) -> None:
        self._store, self._signing = store, signing

    def list_routes(self) -> list[web.RouteDef]:
        return [web.get("/u/{token}", self.ask, allow_head=False), web.post("/u/{token}", self.unsubscribe)]

    async def ask(self, request: web.Request) -> web.Response:
        self._signing.read_unsubscribe(request.match_info["token"])
        return _show(ASK)

    async def unsubscribe(self, request: web.Request) -> web.Response:
        aid, category = self._signing.read_unsubscribe(request.match_info["token"])
        await self._store.writer.run(lambda connection: suppress(connection, aid, category))
        return _show(DONE)


def suppress(connection: sqlite3.Connection, aid: int, category: str) -> None:
    """The address gets nothing more of the category."""
    row = connection.execute(
        "SELECT tenant, channel, value FROM address JOIN receiver USING (rid) WHERE aid = ?", (aid,)
    ).fetchone()
    if row is not None:
        tenant, channel, value = row
        wishes.put_suppression(connection, tenant, channel, value, category, REASON, now_ms())


def _show(content: str) -> web.Response:
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'"}
    return web.Response(text=PAGE.format(content=content), content_type="text/html", headers=headers)
