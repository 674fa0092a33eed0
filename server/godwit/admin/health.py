"""Health checks. /health/live fails if the node must be restarted; /health/ready succeeds while the node accepts new clients."""

from __future__ import annotations

from aiohttp import web

from .view import NodeView

PATHS = ("/health/live", "/health/ready")


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """Add both routes. They answer 200 or 503 with the condition as text."""

    async def show_live(_request: web.Request) -> web.Response:
        return _answer(view, view.health.is_alive)

    async def show_ready(_request: web.Request) -> web.Response:
        return _answer(view, view.health.is_ready)

    for path, show in zip(PATHS, (show_live, show_ready), strict=True):
        router.add_get(path, show)


def _answer(view: NodeView, is_well: bool) -> web.Response:
    answer = {"condition": str(view.health.condition)}
    if view.health.reason:
        answer["reason"] = view.health.reason
    if view.health.journal:
        answer["journal"] = f"failing: {view.health.journal}"
    if view.health.snapshots:
        answer["snapshots"] = f"failing: {view.health.snapshots}"
    if view.health.sealing:
        answer["sealing"] = f"failing: {view.health.sealing}"
    troubles = view.describe_troubles()
    if troubles:
        answer["extensions"] = "; ".join(f"{name}: {why}" for name, why in sorted(troubles.items()))
    return web.json_response(answer, status=200 if is_well else 503)
