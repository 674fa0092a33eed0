"""/metrics in the OpenMetrics form, for Prometheus and what speaks its language."""

from __future__ import annotations

import asyncio

from aiohttp import web

from .view import NodeView


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """Written on a thread; the library behind it is loaded at the first scrape, which keeps starting quick."""

    async def show_metrics(_request: web.Request) -> web.Response:
        content_type, body = await asyncio.to_thread(_render, view)
        return web.Response(body=body, headers={"Content-Type": content_type})

    router.add_get("/metrics", show_metrics)


def _render(view: NodeView) -> tuple[str, bytes]:
    from ..monitoring.metrics import CONTENT_TYPE, Metrics, Sources

    return CONTENT_TYPE, Metrics(Sources(view.engine.stats, view.count, view.describe, view.limits)).render()
