"""TLS handshakes of the admin port: each takes a place from its first byte, and none keeps an operator out."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from godwit import testing
from godwit.testing.fake_engine import open_fake_engine
from tests.authority import Authority

DEADLINE_S = 30


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def running(authority: Authority) -> AsyncIterator[testing.RunningNode]:
    chain, key = authority.issue("localhost", "127.0.0.1")
    settings = {
        "admin": {"tls": True, "request_ms_max": 2_000},
        "client": {"tls_address": "127.0.0.1:0"},
        "tls": {"certificate_files": [chain], "key_files": [key]},
    }
    async with testing.node(settings, open_engine=open_fake_engine) as node, asyncio.timeout(DEADLINE_S):
        yield node


def trust(authority: Authority) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.load_verify_locations(authority.file)
    return made


async def read_metric(running: testing.RunningNode, authority: Authority, name: str) -> int:
    url = f"https://localhost:{running.admin.port}/metrics"
    async with aiohttp.ClientSession() as http, http.get(url, ssl=trust(authority)) as answer:
        assert answer.status == 200
        [line] = [one for one in (await answer.text()).splitlines() if one.startswith(f"godwit_{name} ")]
        return int(float(line.split()[-1]))


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01"], ids=["nothing", "a part of a hello"])
async def test_handshakes_that_do_not_go_on_take_a_bounded_number_of_places(
    running: testing.RunningNode, authority: Authority, said: bytes
) -> None:
    silent = [await asyncio.open_connection(running.admin.host, running.admin.port) for _ in range(200)]
    for _, writer in silent:
        writer.write(said)
    assert await read_metric(running, authority, "admin_connections_evicted_total") >= 100
    assert await silent[0][0].read() == b"", "the one that waits longest has gone first"
    for _, writer in silent:
        writer.transport.abort()


async def test_a_handshake_that_takes_too_long_or_is_none_ends_and_is_counted(
    running: testing.RunningNode, authority: Authority
) -> None:
    slow, other = await asyncio.open_connection(running.admin.host, running.admin.port)
    plain, writer = await asyncio.open_connection(running.admin.host, running.admin.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await plain.read()
    assert await slow.read() == b""
    for one in (other, writer):
        one.close()
    assert await read_metric(running, authority, "admin_requests_malformed_total") == 2


async def test_a_request_that_comes_with_the_last_part_of_the_handshake_is_answered(
    running: testing.RunningNode, authority: Authority
) -> None:
    for _ in range(20):
        opened = await asyncio.open_connection(
            running.admin.host, running.admin.port, ssl=trust(authority), server_hostname="localhost"
        )
        opened[1].write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await opened[0].read()).startswith(b"HTTP/1.1 200 ")
        opened[1].close()


async def test_a_port_that_closes_waits_for_no_handshake(authority: Authority) -> None:
    chain, key = authority.issue("localhost")
    settings = {
        "admin": {"tls": True, "request_ms_max": 600_000},
        "client": {"tls_address": "127.0.0.1:0"},
        "tls": {"certificate_files": [chain], "key_files": [key]},
    }
    async with asyncio.timeout(DEADLINE_S):
        async with testing.node(settings, open_engine=open_fake_engine) as node:
            reader, writer = await asyncio.open_connection(node.admin.host, node.admin.port)
            writer.write(b"\x16")
        assert await reader.read() == b""
        writer.close()
