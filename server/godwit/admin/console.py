"""The console at /: static files that need no build step, and the headers that keep them harmless.

Owns which files are served (those of console/ and, in its vendor folder, the charts that set-up took from the npm lock);
what they show they read from the admin port's documented endpoints, like anybody else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from aiohttp import web

from .hosts import read_host
from .view import NodeView

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

FOLDER = Path(__file__).parent.parent / "console"
PARTS = ("", "pages", "parts", "style", "vendor")
"""The folder itself and those of its folders that are served; whatever else lies there is not."""

_MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def list_files() -> Iterator[tuple[str, Path]]:
    """Path → file; nothing else of the disk can be asked for."""
    for part in PARTS:
        for file in sorted((FOLDER / part).glob("*.*")):
            if file.suffix == ".html":
                yield "/", file
            elif file.suffix in _MEDIA:
                yield "/" + file.relative_to(FOLDER).as_posix(), file


FILES = dict(list_files())


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """One route a file, read once."""
    for path, file in FILES.items():
        router.add_get(path, _make_handler(file.read_bytes(), _MEDIA[file.suffix], view))


def _make_handler(content: bytes, media: str, view: NodeView) -> Handler:
    tag = hashlib.sha256(content).hexdigest()[:32]

    async def show_file(request: web.Request) -> web.StreamResponse:
        known = any(found.value == tag for found in request.if_none_match or ())
        response = (
            web.Response(status=304) if known else web.Response(body=content, content_type=media, charset="utf-8")
        )
        response.etag = tag
        response.headers["Cache-Control"] = "no-cache"
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
