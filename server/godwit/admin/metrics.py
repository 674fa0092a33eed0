"""/metrics: OpenMetrics, for Prometheus and what speaks its language; the older text form for who asks for that alone."""

from __future__ import annotations

import asyncio

from aiohttp import web

from .view import NodeView


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """Written on a thread; the library behind it is loaded at the first scrape, which keeps starting quick."""

    async def show_metrics(request: web.Request) -> web.Response:
        is_old = is_old_form_wanted(request.headers.get("Accept", ""))
        content_type, body = await asyncio.to_thread(_render, view, is_old)
        return web.Response(body=body, headers={"Content-Type": content_type})

    router.add_get("/metrics", show_metrics)


def is_old_form_wanted(accept: str) -> bool:
    """Whether a client names text/plain and not OpenMetrics; who names neither gets OpenMetrics."""
    return "text/plain" in accept and "application/openmetrics-text" not in accept


def _render(view: NodeView, is_old: bool) -> tuple[str, bytes]:
    from ..monitoring.metrics import Metrics, Sources

    return Metrics(Sources(view.engine.stats, view.count, view.describe, view.limits)).render(is_old)
