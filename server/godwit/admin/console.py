"""The console at /: static files that need no build step, and the headers that keep them harmless.

Owns which files are served (those of console/ and, in its vendor folder, the charts that set-up took from the npm lock);
what they show they read from the admin port's documented endpoints, like anybody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aiohttp import web

from ..pages.static_file import MEDIA, make_file_handler
from .hosts import read_host
from .view import NodeView

FOLDER = Path(__file__).parent.parent / "console"
PARTS = ("", "pages", "parts", "style", "vendor")
"""The folder itself and those of its folders that are served; whatever else lies there is not."""


def list_files() -> Iterator[tuple[str, Path]]:
    """Path → file; nothing else of the disk can be asked for."""
    for part in PARTS:
        for file in sorted((FOLDER / part).glob("*.*")):
            if file.suffix == ".html":
                yield "/", file
            elif file.suffix in MEDIA:
                yield "/" + file.relative_to(FOLDER).as_posix(), file


FILES = dict(list_files())


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """One route a file, read once."""

    def read_policy(request: web.Request) -> str:
        return make_policy(request.headers["Host"], view.client.port)

    for path, file in FILES.items():
        router.add_get(path, make_file_handler(file.read_bytes(), MEDIA[file.suffix], read_policy))


def make_policy(host_header: str, client_port: int) -> str:
    """Scripts and styles of our own only; connections only to here and to the client port of the same host."""
    client = f"{read_host(host_header)}:{client_port}"
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self' ws://{client} wss://{client}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
