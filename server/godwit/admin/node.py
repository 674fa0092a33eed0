"""/v1/node: the node's name and condition, in a small answer that a page may request every second."""

from __future__ import annotations

import os
import time

from aiohttp import web

from .guard import Guard
from .view import NodeView


def add_routes(router: web.UrlDispatcher, view: NodeView, guard: Guard) -> None:
    """Add the route; it does not call the engine."""

    async def show_node(_request: web.Request) -> web.Response:
        answer = {
            **view.describe(),
            "client": str(view.client),
            "driver": view.driver,
            "shards": view.shards,
            "cores": os.cpu_count(),
            "time_ms": time.time_ns() // 1_000_000,
            "has_demo": view.read_config().demo.enabled,
            "journal": view.health.journal,
            "can_change": guard.has_token,
        }
        return web.json_response(answer)

    router.add_get("/v1/node", show_node)
