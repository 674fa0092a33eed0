"""/metrics: OpenMetrics for Prometheus and compatible systems; the older text format for clients that accept only that."""

from __future__ import annotations

import asyncio

from aiohttp import web

from .view import NodeView


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """Add the route. Text is made on a thread; its library is loaded at the first request, to keep the start short."""

    async def show_metrics(request: web.Request) -> web.Response:
        is_old = is_old_form_wanted(request.headers.get("Accept", ""))
        content_type, body = await asyncio.to_thread(_render, view, is_old)
        return web.Response(body=body, headers={"Content-Type": content_type})

    router.add_get("/metrics", show_metrics)


def is_old_form_wanted(accept: str) -> bool:
    """Whether a client accepts text/plain and does not name OpenMetrics; by default it gets OpenMetrics."""
    return "text/plain" in accept and "application/openmetrics-text" not in accept


def _render(view: NodeView, is_old: bool) -> tuple[str, bytes]:
    from ..monitoring.metrics import Metrics, Sources

    return Metrics(Sources(view.engine.stats, view.count, view.describe, view.read_config().limits)).render(is_old)
