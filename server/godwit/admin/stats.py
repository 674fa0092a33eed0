"""/v1/stats: the node's current metrics, statistics over windows on request, and the engine's counters.

`?windows=1min,1h` (or `all`) adds windows; `/v1/stats/schema` is the JSON schema of the answer, made from the table of
metrics.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from ..monitoring.schema import make_schema
from ..monitoring.windows import WINDOWS
from .view import NodeView


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """Add the routes. Statistics are read on a thread, because a window may have to be summed again."""

    async def show_stats(request: web.Request) -> web.Response:
        windows = _read_windows(request.query.get("windows", ""))
        return web.json_response(await asyncio.to_thread(_show, view, windows))

    async def show_schema(_request: web.Request) -> web.Response:
        return web.json_response(make_schema(), content_type="application/schema+json")

    router.add_get("/v1/stats", show_stats)
    router.add_get("/v1/stats/schema", show_schema)


def _show(view: NodeView, windows: list[str]) -> dict[str, Any]:
    about = {**view.describe(), "client": str(view.client)}
    return {**about, **view.monitor.show(windows), "engine": view.engine.stats()}


def _read_windows(text: str) -> list[str]:
    if text == "all":
        return list(WINDOWS)
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in WINDOWS]
    if unknown:
        raise web.HTTPBadRequest(reason=f"unknown window: expected {', '.join(WINDOWS)}, or all")
    return names
