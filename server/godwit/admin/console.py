"""The console at /: static files without a build step, and their security headers.

Owns the list of served files: those of console/, and in its vendor folder the chart library that the setup installed. The
pages read only documented endpoints of the admin port.
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
"""The folder itself and its subfolders that are served; other files in it are not."""


def list_files() -> Iterator[tuple[str, Path]]:
    """Path → file. No other file can be requested."""
    for part in PARTS:
        for file in sorted((FOLDER / part).glob("*.*")):
            if file.suffix == ".html":
                yield "/", file
            elif file.suffix in MEDIA:
                yield "/" + file.relative_to(FOLDER).as_posix(), file


FILES = dict(list_files())


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """Add one route for each file, which is read once."""

    def read_policy(request: web.Request) -> str:
        return make_policy(request.headers["Host"], view.client.port)

    for path, file in FILES.items():
        router.add_get(path, make_file_handler(file.read_bytes(), MEDIA[file.suffix], read_policy))


def make_policy(host_header: str, client_port: int) -> str:
    """The Content-Security-Policy: own scripts and styles only; connections only to this port and to the client port of the same host."""
    client = f"{read_host(host_header)}:{client_port}"
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self' ws://{client} wss://{client}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
