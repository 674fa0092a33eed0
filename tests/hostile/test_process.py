"""Faults of the whole process: a storm of connections, no free descriptor, a clock that jumps, broken files, floods of names."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from godwit import testing
from godwit.client import Client
from godwit.config import build_config
from godwit.errors import ConfigInvalid
from tests.hostile.peer import DEADLINE_S, Peer, request
from tests.node_process import running_node
from tests.waiting import until

ESCAPE = "\x1b[31m<script>alert(1)</script>"


async def test_67_a_storm_over_the_limit_is_turned_away_and_who_is_there_stays() -> None:
    async with (
        running_node({"limits.connections_max": 50, "node.shards": 1}) as node,
        asyncio.timeout(DEADLINE_S * 2),
        Client(node.url) as client,
        aiohttp.ClientSession() as http,
    ):
        subscription = client.subscribe("/a")
        await subscription.joined()
        async with contextlib.AsyncExitStack() as storm:
            for _ in range(300):
                with contextlib.suppress(OSError):
                    await storm.enter_async_context(Peer.open(node.host, node.port))
            await client.publish("/a", {"still": "here"})
            assert (await anext(subscription)).json() == {"still": "here"}
            async with http.get(f"{node.admin_url}/metrics") as answer:
                text = await answer.text()
        refused = [line for line in text.splitlines() if 'code="4201"' in line and "connections_refused" in line]
        assert refused and float(refused[0].rsplit(" ", 1)[1]) >= 200
        used = node.cpu_seconds()
        await client.publish("/a", 2)
        assert (await anext(subscription)).json() == 2
        assert node.cpu_seconds() - used < 1, "nothing spins"


def count_descriptors() -> int:
    """Of this process: nodes of other tests keep some until they are collected."""
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("driver", ["readiness"])
async def test_67_with_no_descriptor_left_nothing_spins_and_who_is_there_stays(driver: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    low = 200 + count_descriptors()
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    try:
        async with running_node({"node.driver": driver, "node.shards": 1}) as node, asyncio.timeout(DEADLINE_S * 2):
            resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (120, 120))
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            async with Client(node.url) as client, contextlib.AsyncExitStack() as storm:
                subscription = client.subscribe("/a")
                await subscription.joined()
                for _ in range(300):
                    with contextlib.suppress(OSError):
                        await storm.enter_async_context(Peer.open(node.host, node.port))
                began, used = time.monotonic(), node.cpu_seconds()
                for number in range(50):
                    await client.publish("/a", number)
                    assert (await anext(subscription)).json() == number
                took = time.monotonic() - began
                assert node.cpu_seconds() - used < max(0.5, took * 0.9), "nothing spins"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]),) * 2)
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("driver", ["readiness", "auto"])
@pytest.mark.parametrize("limit", [64, 256])
async def test_67_clients_cannot_take_the_descriptors_of_the_admin_port_and_the_journal(
    limit: int, driver: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("a-token-of-the-operator")
    (tmp_path / "token").chmod(0o600)
    settings: dict[str, object] = {
        "node.driver": driver,
        "node.shards": 2,
        "node.data_directory": tmp_path / "data",
        "journal.segment_bytes_max": 65_536,
        "admin.token_file": tmp_path / "token",
    }
    before = (sys.executable, "-c", LIMITED, str(limit))
    operator = {"Authorization": "Bearer a-token-of-the-operator"}
    async with (
        running_node(settings, before=before) as node,
        asyncio.timeout(DEADLINE_S * 2),
        Client(node.url) as client,
        aiohttp.ClientSession(headers=operator) as http,
        contextlib.AsyncExitStack() as storm,
    ):
        await client.publish("/a", "first", ack="disk")
        for _ in range(limit + 200):
            with contextlib.suppress(OSError):
                await storm.enter_async_context(Peer.open(node.host, node.port))
        segments = tmp_path / "data" / "journal" / "messages"
        sealed = len(list(segments.glob("*.arrow")))
        for _ in range(40):
            await client.publish("/a", "x" * 5_000, ack="disk")
        await until(lambda: len(list(segments.glob("*.arrow"))) > sealed)  # beside the writer
        for method, path in (("GET", "/health/ready"), ("GET", "/metrics"), ("POST", "/v1/reload")):
            async with http.request(method, f"{node.admin_url}{path}") as answer:
                assert answer.status == 200, path


async def test_70_a_broken_reload_changes_nothing_and_an_empty_list_allows_nobody(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("correct-horse-battery-staple\n")
    settings: dict[str, Any] = {"access": {"mode": "basic", "publish_tokens_file": str(tokens)}}
    table = {**testing.FREE_PORTS, **settings}
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):

        async def publishes(token: str) -> int:
            async with Peer.open(node.client.host, node.client.port) as peer:
                fields = ("Content-Type: text/plain", f"Authorization: Bearer {token}")
                await peer.say(request("POST", "/v1/messages?subject=/a", *fields, body=b"x"))
                return await peer.status()

        assert await publishes("correct-horse-battery-staple") == 201
        for broken in ("", "# nobody\n", "short\n", "a token with blanks in it\n", "\x00\x01\n"):
            await asyncio.to_thread(tokens.write_text, broken)
            with pytest.raises(ConfigInvalid):
                await node.node.reload(build_config(table, {}, {}))
            assert await publishes("correct-horse-battery-staple") == 201
        for section, values in (
            ("client", {"trusted_proxies": ["10.0.0.1/8"]}),
            ("access", {"mode": "basic", "publish_tokens": ["short"]}),
            ("limits", {"message_bytes_max": -1}),
            ("nothing", {"a": 1}),
        ):
            with pytest.raises(ConfigInvalid):
                await node.node.reload(build_config({**table, section: values}, {}, {}))
        assert await publishes("correct-horse-battery-staple") == 201
    for broken in ("", "# nobody\n"):
        await asyncio.to_thread(tokens.write_text, broken)
        with pytest.raises(ConfigInvalid):
            async with testing.node(settings):
                pass


async def test_72_what_peers_say_is_escaped_in_logs_and_answers_and_tokens_stand_nowhere(tmp_path: Path) -> None:
    log = tmp_path / "log"
    token = "a-token-that-must-stand-nowhere"
    with log.open("wb") as errors:
        async with running_node({"logging.sessions": "true", "logging.format": "json"}, log=errors.fileno()) as node:
            async with asyncio.timeout(DEADLINE_S), Peer.live(node.host, node.port) as peer:
                await peer.ask({"id": 1, "connect": {"client": ESCAPE, "token": token}})
                await peer.ask({"id": 2, "subscribe": "/<b>\u202e/**"})
                await peer.ask({"id": 3, "publish": f"/{ESCAPE}", "content": 1})
                async with aiohttp.ClientSession() as http:
                    for path in ("/v1/connections", "/metrics", "/v1/stats", "/v1/refusals"):
                        async with http.get(node.admin_url + path) as answer:
                            text = await answer.text()
                            assert "\x1b" not in text and token not in text, path
                            assert "text/html" not in answer.headers.get("Content-Type", ""), path
                            assert path != "/metrics" or "<script" not in text
            await node.terminate()
    written = log.read_text()
    assert "\x1b" not in written and token not in written
    assert all(json.loads(line) for line in written.splitlines())


async def test_72_a_flood_of_names_makes_no_page_longer() -> None:
    settings = {"limits.subjects_max": 5_000, "node.shards": 1}
    async with running_node(settings) as node, asyncio.timeout(DEADLINE_S * 2), aiohttp.ClientSession() as http:

        async def lines() -> int:
            async with http.get(f"{node.admin_url}/metrics") as answer:
                return len((await answer.text()).splitlines())

        async with Peer.live(node.host, node.port) as peer:
            await peer.ask({"id": 1, "publish": "/first", "content": 1})
            await peer.ask({"id": 2, "publish": "no subject", "content": 1})
            before = await lines()
            for number in range(10, 6_010):
                await peer.say({"publish": f"/flood/{number}", "content": 1})
            while (await peer.ask({"id": 3, "ping": True})).get("ok") != "pong":
                pass
            assert await lines() - before < 20, "a code or two that were not seen before, and no name"
