"""The console at /console/: static files and their security headers.

The pages read the API with the key that the operator enters. Invariant: no other file can be requested.
"""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from ....pages.static_file import MEDIA, make_file_handler

FOLDER = Path(__file__).parents[3] / "console"
PARTS = ("", "parts", "style", "dispatch", "dispatch/pages")
"""The folders whose files are served."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_PAGE = "dispatch/index.html"


def list_routes() -> list[web.RouteDef]:
    """One route for each file, read once."""
    files = {"/console/": (FOLDER / _PAGE, "text/html")}
    for part in PARTS:
        for file in sorted((FOLDER / part).glob("*.*")):
            if file.suffix in MEDIA and file.suffix != ".html":
                files[f"/console/{file.relative_to(FOLDER).as_posix()}"] = (file, MEDIA[file.suffix])
    return [
        web.get(path, make_file_handler(file.read_bytes(), media, lambda _: POLICY))
        for path, (file, media) in files.items()
    ]
