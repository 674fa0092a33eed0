"""The admin port's connections over real sockets: what half a request, nonsense and many silent clients get."""

import asyncio

import aiohttp
import pytest
import structlog

from godwit import testing
from godwit.testing.fake_engine import open_fake_engine

DEADLINE_S = 20
TOKEN = "an-admin-token-of-a-test"


async def tell(running: testing.RunningNode, said: bytes) -> bytes:
    """What the admin port answers until it closes."""
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(running.admin.host, running.admin.port)
        writer.write(said)
        try:
            return await reader.read()
        finally:
            writer.close()


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"", b""),
        (b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n", b""),
        (b"DELETE /v1/subjects HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
         b"Authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n{", b"HTTP/1.1 408 "),
    ],
)  # fmt: skip
async def test_a_request_that_does_not_end_is_closed_in_time(said: bytes, status: bytes) -> None:
    settings = {"admin": {"request_ms_max": 300, "token": TOKEN}}
    async with testing.node(settings, open_engine=open_fake_engine) as running:
        answer = await tell(running, said)
        assert answer.startswith(status) and bool(answer) is bool(status)


async def test_a_malformed_request_is_counted_and_is_one_line_without_a_traceback() -> None:
    async with testing.node(open_engine=open_fake_engine) as running:
        with structlog.testing.capture_logs() as lines:
            for nonsense in (
                b"\x16\x03\x01\x00\xa5\x01\r\n\r\n",
                b"GET / HTTP/1.1\r\nHost: a\r\nA b: c\r\n\r\n",
                b"\r\n?\r\n\r\n",
            ):
                answer = await tell(running, nonsense)
                assert answer.split(b" ")[1] == b"400"
                assert b"aiohttp" not in answer and b"Python" not in answer
        said = [line for line in lines if line["log_level"] != "info"]
        assert [line["event"] for line in said] == ["admin_request_malformed"]
        assert "exc_info" not in said[0]
        async with aiohttp.ClientSession() as http, http.get(f"{running.admin_url}/metrics") as metrics:
            assert "godwit_admin_requests_malformed_total 3" in await metrics.text()


async def test_silent_connections_keep_no_operator_out() -> None:
    async with testing.node(open_engine=open_fake_engine) as running, asyncio.timeout(DEADLINE_S):
        silent = [await asyncio.open_connection(running.admin.host, running.admin.port) for _ in range(200)]
        async with aiohttp.ClientSession() as http:
            for _ in range(3):
                async with http.get(f"{running.admin_url}/health/ready") as answer:
                    assert answer.status == 200
            async with http.get(f"{running.admin_url}/metrics") as metrics:
                [line] = [one for one in (await metrics.text()).splitlines() if "connections_evicted_total " in one]
        assert int(float(line.split()[-1])) >= 100
        assert await silent[0][0].read() == b"", "the one that waits longest has gone first"
        for _, writer in silent:
            writer.close()
