"""/v1/connections: the connected clients, how far each is behind, and how to close one.

A connection's number is hexadecimal text in every answer, path and log line: one form, and JavaScript's numbers cannot
hold 64 bits. app.py checks the token of requests that change something.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from ..codes import Code
from ..engine import CloseOrder
from ..logs import read_logger
from .query import read_flag, read_number, read_text
from .turn import Turn
from .view import NodeView

LIMIT_DEFAULT, LIMIT_MAX = 100, 1_000
SEARCH_CHARACTERS_MAX = 256
ID_DIGITS_MAX = 16


def add_routes(router: web.UrlDispatcher, view: NodeView, turn: Turn) -> None:
    """Add the routes. A page is `{"rows": […], "next": KEY}`. It may be short or empty if a search would exceed the work of
    one request.
    """

    async def list_connections(request: web.Request) -> web.Response:
        limit = read_number(request, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX)
        after = read_id(request.query.get("after", "") or "0", "after")
        search = read_text(request, "search", SEARCH_CHARACTERS_MAX) or None
        rows, following = await turn.take(view.engine.connections, after, limit, search, read_flag(request, "behind"))
        return web.json_response(
            {"rows": [_show(row) for row in rows], "next": None if following is None else show_id(following)}
        )

    async def show_connection(request: web.Request) -> web.Response:
        row = await asyncio.to_thread(view.engine.connection, read_id(request.match_info["connection"], "a connection"))
        if row is None:
            raise web.HTTPNotFound(reason="the connection does not exist: it has ended")
        return web.json_response({"stands": [], **_show(row)})

    async def end_connection(request: web.Request) -> web.Response:
        connection = read_id(request.match_info["connection"], "a connection")
        row = await asyncio.to_thread(view.engine.connection, connection)
        if row is None:
            raise web.HTTPNotFound(reason="the connection does not exist: it has ended")
        code = Code.CLOSED_BY_OPERATOR
        await asyncio.to_thread(view.engine.order, [CloseOrder(connection, int(code), "closed by an operator")])
        read_logger().info("connection_closed_by_operator", connection=show_id(connection), address=row["address"])
        return web.Response(status=204)

    router.add_get("/v1/connections", list_connections)
    router.add_get("/v1/connections/{connection}", show_connection)
    router.add_delete("/v1/connections/{connection}", end_connection)


def _show(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "connection": show_id(row["connection"])}


def show_id(connection: int) -> str:
    """A connection's number as the console, the logs and the search show it."""
    return f"{connection:x}"


def read_id(text: str, name: str) -> int:
    """Parse a number that `show_id` wrote; anything else is a 400."""
    if not 0 < len(text) <= ID_DIGITS_MAX or not set(text) <= set("0123456789abcdef"):
        raise web.HTTPBadRequest(
            reason=f"{name} must be a connection's number: at most {ID_DIGITS_MAX} hexadecimal digits"
        )
    return int(text, 16)
