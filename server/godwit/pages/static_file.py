"""One static file as an HTTP handler: read once, with an ETag and security headers. The caller decides the files, their
paths, and what a page may load.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_file_handler(content: bytes, media: str, read_policy: Callable[[web.Request], str]) -> Handler:
    """A handler that returns `content`; `read_policy` returns the Content-Security-Policy for a request."""
    tag = hashlib.sha256(content).hexdigest()[:32]

    async def show_file(request: web.Request) -> web.StreamResponse:
        known = any(found.value == tag for found in request.if_none_match or ())
        response = (
            web.Response(status=304) if known else web.Response(body=content, content_type=media, charset="utf-8")
        )
        response.etag = tag
        response.headers["Cache-Control"] = "no-cache"
        response.headers["Content-Security-Policy"] = read_policy(request)
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["X-Frame-Options"] = "DENY"
        return response

    return show_file
