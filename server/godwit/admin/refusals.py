"""/v1/refusals: the last refused clients, with code and reason, newest first. /v1/limits has the number of each code."""

from __future__ import annotations

from aiohttp import web

from .view import NodeView


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """One route."""

    async def list_refusals(_request: web.Request) -> web.Response:
        return web.json_response({"rows": list(view.read_refusals())})

    router.add_get("/v1/refusals", list_refusals)
