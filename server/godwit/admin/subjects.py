"""/v1/subjects and /v1/subject. In the order of names a page begins after a key, which stays correct while the list changes.
Any other order, and a search, use a survey that is at most some seconds old, so that not every request iterates over all
subjects.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from .query import read_choice, read_number, read_pattern, read_subject, read_text
from .turn import Turn
from .view import NodeView

LIMIT_DEFAULT, LIMIT_MAX = 100, 1_000
OFFSET_MAX = 2**32 - 1
SEARCH_CHARACTERS_MAX = 1_024
SORTS = ("subject", "rate", "messages", "bytes", "subscribers", "last")


def add_routes(router: web.UrlDispatcher, view: NodeView, turn: Turn) -> None:
    """A page is `{"rows": […], "next": KEY}`, or with `sort` or `search` `{"rows": […], "total": …}`."""

    async def list_subjects(request: web.Request) -> web.Response:
        limit = read_number(request, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX)
        pattern = read_pattern(request, "pattern")
        sort = read_choice(request, "sort", SORTS)
        order = read_choice(request, "order", ("asc", "desc"))
        offset = read_number(request, "offset", 0, 0, OFFSET_MAX)
        search = read_text(request, "search", SEARCH_CHARACTERS_MAX)
        if "sort" in request.query or "search" in request.query:
            asked = (pattern, search, sort, order == "desc", offset, limit)
            return web.json_response(await turn.take(view.engine.survey, *asked))
        rows = await turn.take(view.engine.subjects, request.query.get("after", ""), limit, pattern)
        return web.json_response({"rows": rows, "next": rows[-1]["subject"] if len(rows) >= limit else None})

    async def show_subject(request: web.Request) -> web.Response:
        subject = read_subject(request, "subject")
        rows = await asyncio.to_thread(view.engine.subjects, "", 1, subject)
        if not rows:
            raise web.HTTPNotFound(
                reason="the subject does not exist: it has no messages, no snapshot and no subscriber"
            )
        return web.json_response(rows[0])

    router.add_get("/v1/subjects", list_subjects)
    router.add_get("/v1/subject", show_subject)
