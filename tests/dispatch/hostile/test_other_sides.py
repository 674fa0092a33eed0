"""What others answer: bodies without end, compressed bombs, lines of a megabyte; and requests that are cut or come at once.

Numbers are the design's.
"""

from __future__ import annotations

import asyncio
import contextlib
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from tests.dispatch.conftest import Running, running
from tests.dispatch.email.test_email import Server, mailing
from tests.dispatch.email.test_email import wait_for_state as wait_for_mail
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_webhook import HI, LOOPBACK, endpoint, put_webhook, wait_for_state

DEADLINE_S = 60
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
LINE_BYTES = 1_000_000
SENT_MAX = 64 << 20
"""What sockets on this machine can hold, and more."""


async def test_05_a_notification_that_is_first_sent_many_times_at_once_is_one(dispatch: Running) -> None:
    body = {"to": {"receiver": {"id": "ann"}}, "content": {"title": "hi"}}
    async with asyncio.timeout(DEADLINE_S):
        puts = await asyncio.gather(*(dispatch.api("PUT", "/v1/notifications/n1", body) for _ in range(20)))
        posts = await asyncio.gather(
            *(dispatch.api("POST", "/v1/notifications", body, **{"Idempotency-Key": "k"}) for _ in range(20))
        )
        for answers in (puts, posts):
            assert {status for status, _ in answers} == {202} and len({answer["id"] for _, answer in answers}) == 1
            assert sum(not answer.get("repeat", False) for _, answer in answers) == 1
            assert (await wait_for(dispatch, answers[0][1]["id"]))["counts"] == {"inbox": {"sent": 1}}


async def test_14_the_cut_line_of_an_import_is_named_and_the_others_are_taken(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        status, answer = await dispatch.api("POST", "/v1/receivers/import", b'{"id":"ann"}\n{"id":"bob","attr')
        assert (status, answer["lines"], answer["rejected_count"]) == (200, 2, 1)
        assert (answer["rejected"][0]["line"], answer["rejected"][0]["code"]) == (2, 4300)
        assert (await dispatch.api("GET", "/v1/receivers/ann"))[0] == 200
        assert (await dispatch.api("GET", "/v1/receivers/bob"))[0] == 404


@pytest.mark.parametrize("hangs", [False, True])
async def test_27_the_body_of_an_answer_is_not_waited_for(tmp_path: Path, runtime: Path, hangs: bool) -> None:
    """One without end, and one of which no more comes after a byte."""
    sent, ended = 0, asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"}")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\nx")
            while not hangs:
                writer.write(bytes(65_536))
                await writer.drain()
                sent += 65_536
            while await reader.read(65_536):
                pass
        writer.close()
        ended.set()

    async with asyncio.timeout(DEADLINE_S), serving(talk) as host, running(tmp_path, LOOPBACK) as both:
        await put_webhook(both, f"http://{host}/")
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "n1", "sent")
        assert row["attempt"] == 1
        await ended.wait()
    assert sent < SENT_MAX


async def test_28_a_compressed_answer_is_not_unpacked(tmp_path: Path, runtime: Path) -> None:
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(256)), packer.flush()])

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async with running(tmp_path, LOOPBACK) as both, endpoint(answer) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        tracemalloc.start()
        try:
            await both.api("PUT", "/v1/notifications/n1", HI)
            assert (await wait_for_state(both, "n1", "sent"))["attempt"] == 1
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 16 << 20


@asynccontextmanager
async def serving(talk: Talk) -> AsyncIterator[str]:
    """A server that talks with each connection; its host and port."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def flooding(step: bytes) -> AsyncIterator[str]:
    """A mail server whose answer to one step is a line of a megabyte; empty: its greeting."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        flood = b"250 " + b"x" * LINE_BYTES + b"\r\n"
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            writer.write(b"220 mx.test\r\n" if step else flood)
            while line := await reader.readline():
                if line.upper().startswith(b"DATA"):
                    writer.write(b"354 go\r\n")
                    await reader.readuntil(b"\r\n.\r\n")
                    writer.write(flood if step == b"DATA" else b"250 taken\r\n")
                else:
                    writer.write(flood if step and line.upper().startswith(step) else b"250 OK\r\n")
                await writer.drain()
        writer.close()

    async with serving(talk) as relay:
        yield relay


@pytest.mark.parametrize(
    ("step", "reason"), [(b"", "temporary"), (b"EHLO", "temporary"), (b"RCPT", "temporary"), (b"DATA", "doubt")]
)
async def test_41_a_line_of_a_megabyte_ends_the_connection_and_the_mail_waits(
    tmp_path: Path, runtime: Path, step: bytes, reason: str
) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        flooding(step) as relay,
        mailing(tmp_path, Server(), relay=relay) as both,
    ):
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_mail(both, "deferred")
        assert row["reason"] == reason and len(row["ref"]) < 1_000
        assert (await both.api("GET", "/v1/receivers/ann"))[1]["addresses"][0]["state"] == "active"
