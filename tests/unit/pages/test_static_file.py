"""A file of a page: shown once, asked again by its tag, always with the headers that keep it harmless."""

import asyncio
from collections.abc import Mapping

from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from godwit.pages.static_file import MEDIA, make_file_handler


def ask(*requests: dict[str, str]) -> list[tuple[int, Mapping[str, str], bytes]]:
    async def run() -> list[tuple[int, Mapping[str, str], bytes]]:
        app = web.Application()
        app.router.add_get("/a.css", make_file_handler(b"p {}", MEDIA[".css"], lambda _: "default-src 'self'"))
        answers = []
        async with TestServer(app, host="127.0.0.1") as server, ClientSession() as session:
            for headers in requests:
                async with session.get(server.make_url("/a.css"), headers=headers) as response:
                    answers.append((response.status, response.headers, await response.read()))
        return answers

    return asyncio.run(run())


def test_a_file_is_shown_with_its_type_tag_and_policy() -> None:
    [(status, headers, body)] = ask({})
    assert (status, body) == (200, b"p {}")
    assert headers["Content-Type"] == "text/css; charset=utf-8"
    assert headers["Content-Security-Policy"] == "default-src 'self'"
    assert (headers["Referrer-Policy"], headers["X-Frame-Options"]) == ("no-referrer", "DENY")
    assert headers["Cache-Control"] == "no-cache"


def test_who_has_the_file_is_told_so_without_its_bytes() -> None:
    [(_, first, _)] = ask({})
    known, stale = ask({"If-None-Match": first["ETag"]}, {"If-None-Match": '"other"'})
    assert (known[0], known[2]) == (304, b"")
    assert known[1]["Content-Security-Policy"] == "default-src 'self'"
    assert (stale[0], stale[2]) == (200, b"p {}")
