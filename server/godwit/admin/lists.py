"""Subjects and connections as JSON; lists are paged by a key that stays right while the list changes.

/v1/subjects?pattern=&after=&limit= · /v1/connections?search=&after=&limit=. A page is `{"rows": […],
"next": KEY}`; `next` is null on the last page, else it is `after` of the next one.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from ..errors import SubjectInvalid
from ..subject import check_pattern
from .view import NodeView

LIMIT_DEFAULT, LIMIT_MAX = 100, 1_000
SEARCH_CHARACTERS_MAX = 256


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """The engine is asked on a thread: it may have to wait for its shards, the event loop may not."""

    async def list_subjects(request: web.Request) -> web.Response:
        limit = _read_number(request, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX)
        pattern = request.query.get("pattern") or None
        try:
            pattern = check_pattern(pattern) if pattern else None
        except SubjectInvalid as error:
            raise web.HTTPBadRequest(reason=f"pattern {error.reason}") from error
        rows = await asyncio.to_thread(view.engine.subjects, request.query.get("after", ""), limit, pattern)
        return _make_page(rows, limit, "subject")

    async def list_connections(request: web.Request) -> web.Response:
        limit = _read_number(request, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX)
        after = _read_number(request, "after", 0, 0, 2**64 - 1)
        search = request.query.get("search", "")[:SEARCH_CHARACTERS_MAX] or None
        rows = await asyncio.to_thread(view.engine.connections, after, limit, search)
        # as text: JavaScript's numbers cannot hold 64 bits
        return _make_page([{**row, "connection": str(row["connection"])} for row in rows], limit, "connection")

    router.add_get("/v1/subjects", list_subjects)
    router.add_get("/v1/connections", list_connections)


def _make_page(rows: list[dict[str, object]], limit: int, key: str) -> web.Response:
    return web.json_response({"rows": rows, "next": rows[-1][key] if len(rows) >= limit else None})


def _read_number(request: web.Request, name: str, default: int, low: int, high: int) -> int:
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and low <= int(text[:21]) <= high):
        raise web.HTTPBadRequest(reason=f"{name} must be a whole number from {low} to {high}")
    return int(text)
