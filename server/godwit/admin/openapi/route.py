"""Serves the document, made at its first request."""

from __future__ import annotations

import json
from functools import cache

from aiohttp import web

from .document import make_document


def add_routes(router: web.UrlDispatcher) -> None:
    """One route."""

    @cache
    def make() -> str:
        return json.dumps(make_document(), separators=(",", ":"))

    async def show_document(_request: web.Request) -> web.Response:
        return web.Response(text=make(), content_type="application/json")

    router.add_get("/openapi.json", show_document)
