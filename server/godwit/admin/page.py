"""The page at /: static files that need no build step, and the headers that keep them harmless."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from .hosts import read_host
from .view import NodeView

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_FOLDER = Path(__file__).parent / "page"
_MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = {
    "/" + (file.name if file.suffix != ".html" else ""): file
    for file in sorted(_FOLDER.iterdir())
    if file.suffix in _MEDIA
}
"""Path → file: read once; nothing else of the disk can be asked for."""


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """One route a file."""
    for path, file in FILES.items():
        router.add_get(path, _make_handler(file.read_bytes(), _MEDIA[file.suffix], view))


def _make_handler(content: bytes, media: str, view: NodeView) -> Handler:
    async def show_file(request: web.Request) -> web.StreamResponse:
        response = web.Response(body=content, content_type=media, charset="utf-8")
        response.headers["Content-Security-Policy"] = make_policy(request.headers["Host"], view.client.port)
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Frame-Options"] = "DENY"
        return response

    return show_file


def make_policy(host_header: str, client_port: int) -> str:
    """Scripts and styles of our own only; connections only to here and to the client port of the same host."""
    client = f"{read_host(host_header)}:{client_port}"
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self' ws://{client} wss://{client}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
