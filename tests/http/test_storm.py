"""Case 67: more connections than the node, or its process, may have. Existing clients are still served, refusals are counted, and no loop
spins.
"""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from godwit.announcement import DESCRIPTORS_KEPT
from tests.node_process import NodeProcess, running_node
from tests.raw_client import RawClient, raw_client

DEADLINE_S = 60
STORM = 300


@asynccontextmanager
async def connected_clients(node: NodeProcess, count: int) -> AsyncIterator[list[RawClient]]:
    clients = [raw_client(node.url) for _ in range(count)]
    opened = await asyncio.gather(*(client.__aenter__() for client in clients))
    try:
        yield opened
    finally:
        await asyncio.gather(*(client.__aexit__(None, None, None) for client in clients))


async def knock(node: NodeProcess) -> bool:
    """Whether a newcomer is served."""
    try:
        reader, writer = await asyncio.open_connection(node.host, node.port)
    except OSError:
        return False
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return (await reader.read(12)).startswith(b"HTTP/1.1 200")
    except OSError:
        return False
    finally:
        writer.close()


def read_stats(node: NodeProcess) -> str:
    with urlopen(f"{node.admin_url}/metrics") as answer:
        return str(answer.read().decode())


def ask(node: NodeProcess, path: str) -> int:
    with urlopen(f"{node.admin_url}{path}") as answer:
        return int(answer.status)


def refused(node: NodeProcess, name: str) -> int:
    lines = [line for line in read_stats(node).splitlines() if "refused" in line and name in line]
    return sum(int(float(line.rsplit(" ", 1)[1])) for line in lines)


@pytest.mark.parametrize("driver", ["auto", "readiness"])
async def test_67_the_limit_of_connections_is_the_nodes_and_old_clients_are_unharmed(driver: str) -> None:
    limit = 40
    settings = {"limits.connections_max": limit, "node.shards": 4, "node.driver": driver}
    async with asyncio.timeout(DEADLINE_S), running_node(settings) as node, connected_clients(node, limit) as clients:
        assert [(await client.ask({"id": 1, "ping": True}))["ok"] for client in clients] == ["pong"] * limit
        assert not any(await asyncio.gather(*(knock(node) for _ in range(STORM))))
        listener, publisher = clients[0], clients[-1]
        await listener.ask({"id": 2, "subscribe": "/storm"})
        await publisher.send({"id": 3, "publish": "/storm", "content": 1})
        while (heard := await listener.receive()) is not None and heard.get("content") != 1:
            pass
        assert heard is not None
        assert await asyncio.to_thread(refused, node, "ConnectionsTooMany") >= STORM
        before = node.cpu_seconds()
        assert not await knock(node)
        await asyncio.gather(*(client.ask({"id": 4, "ping": True}) for client in clients))
        assert node.cpu_seconds() - before < 5, "it spins"
        await clients[1].socket.close()
        while not await knock(node):  # its place is free once the node has seen it go
            pass


async def test_67_operators_are_answered_in_a_storm_where_descriptors_are_left_for_that(tmp_path: Path) -> None:
    limit, few = 200, ("sh", "-c", 'ulimit -n 200; exec "$@"', "-")
    settings: dict[str, object] = {"node.driver": "readiness", "node.shards": 2}
    log = tmp_path / "log"
    with log.open("wb") as errors:
        async with asyncio.timeout(DEADLINE_S), running_node(settings, log=errors.fileno(), before=few):
            assert "descriptor_limit_low" in log.read_text() and "limits.connections_max to 100" in log.read_text()
    settings["limits.connections_max"] = most = limit - DESCRIPTORS_KEPT
    with log.open("wb") as errors:
        async with (
            asyncio.timeout(DEADLINE_S),
            running_node(settings, log=errors.fileno(), before=few) as node,
            connected_clients(node, most) as clients,
        ):
            assert [(await client.ask({"id": 1, "ping": True}))["ok"] for client in clients] == ["pong"] * most
            assert not any(await asyncio.gather(*(knock(node) for _ in range(STORM))))
            assert await asyncio.to_thread(refused, node, "ConnectionsTooMany") > 0
            assert "descriptor_limit_low" not in log.read_text()


async def test_67_descriptors_that_are_used_up_refuse_newcomers_and_harm_nobody() -> None:
    settings = {"node.driver": "readiness", "node.shards": 2}
    async with asyncio.timeout(DEADLINE_S), running_node(settings) as node, raw_client(node.url) as client:
        await client.ask({"id": 1, "ping": True})
        limit = 120
        resource.prlimit(node.process.pid, resource.RLIMIT_NOFILE, (limit, limit))
        idle = await asyncio.gather(
            *(asyncio.open_connection(node.host, node.port) for _ in range(2 * limit)), return_exceptions=True
        )
        before = node.cpu_seconds()
        for number in range(20):
            assert (await client.ask({"id": number, "ping": True}))["ok"] == "pong"
        assert node.cpu_seconds() - before < 5, "it spins"
        for pair in idle:
            if not isinstance(pair, BaseException):
                pair[1].close()
        while not await knock(node):  # they are served again once there is room
            pass


async def test_67_operators_are_answered_when_clients_have_taken_every_descriptor_that_they_may_have() -> None:
    few = ("sh", "-c", 'ulimit -n 200; exec "$@"', "-")
    settings: dict[str, object] = {"node.driver": "readiness", "node.shards": 2}
    async with asyncio.timeout(DEADLINE_S), running_node(settings, before=few) as node, raw_client(node.url) as client:
        idle = await asyncio.gather(*(asyncio.open_connection(node.host, node.port) for _ in range(STORM)))
        while not await asyncio.to_thread(refused, node, "sockets_refused_total"):
            pass
        # A question to the admin port that came amid the storm held a low descriptor, and gave it back.
        while await knock(node):
            idle.append(await asyncio.open_connection(node.host, node.port))
        for _ in range(5):
            assert await asyncio.to_thread(ask, node, "/health/ready") == 200
            assert await asyncio.to_thread(ask, node, "/metrics") == 200
        assert (await client.ask({"id": 1, "ping": True}))["ok"] == "pong"
        for _, writer in idle:
            writer.close()


async def test_67_memory_that_is_used_up_refuses_bodies_and_harms_nobody() -> None:
    settings = {"limits.partial_bytes_max": 1_048_576, "limits.message_bytes_max": 1_048_576, "node.shards": 1}
    async with asyncio.timeout(DEADLINE_S), running_node(settings) as node, raw_client(node.url) as client:
        await client.ask({"id": 1, "ping": True})
        head = b"POST /v1/messages?subject=/a HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n"
        answers = await asyncio.gather(*(_half_a_body(node, head, 800_000) for _ in range(8)))
        said = [json.loads(answer.partition(b"\r\n\r\n")[2])["title"] for answer in answers if answer]
        assert said and set(said) == {"PartialBytesExceeded"}
        assert (await client.ask({"id": 2, "publish": "/a", "content": 1}))["ok"] == "published"
        assert await asyncio.to_thread(refused, node, "PartialBytesExceeded") >= len(said)


async def _half_a_body(node: NodeProcess, head: bytes, length: int) -> bytes:
    """What is answered before the body is whole; nothing, where it would have been taken."""
    reader, writer = await asyncio.open_connection(node.host, node.port)
    try:
        writer.write(head + b"x" * length)
        return await asyncio.wait_for(reader.read(-1), 3)
    except (TimeoutError, ConnectionError):
        return b""
    finally:
        writer.close()
