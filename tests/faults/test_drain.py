"""A node that is asked to leave under load: notice, reconnect hint, nothing acknowledged lost, exit code 0."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack

from godwit.client import Client
from tests.faults.ledger import Ledger
from tests.faults.ways import QUICK
from tests.node_process import running_node
from tests.raw_client import RawClient, raw_client

DEADLINE_S = 60
MESSAGES = 2_000  # acknowledged before it is asked to leave


async def test_71_leaving_node_loses_nothing_that_it_acknowledged(driver: str) -> None:
    ledger = Ledger()
    async with (
        asyncio.timeout(DEADLINE_S),
        # It leaves when its last client has, which waits for no time: the reader goes when it has what was acknowledged.
        running_node({"node.driver": driver, "node.shards": 2, "drain.grace_ms": 2 * DEADLINE_S * 1_000}) as node,
        Client(node.url, encoding="binary", settings=QUICK) as publisher,
    ):
        async with raw_client(node.url) as reader:
            assert (await reader.ask({"id": 1, "subscribe": "/load/*"}))["ok"] == "subscribed"
            leaving = asyncio.Event()
            received: dict[str, list[int]] = {}
            reading = asyncio.create_task(_read(reader, received, ledger, leaving))
            publishing = [asyncio.create_task(_publish(publisher, f"/load/{name}", ledger)) for name in range(8)]
            while ledger.total < MESSAGES:
                await ledger.wait()
            ending = asyncio.create_task(node.terminate())
            await leaving.wait()
            for task in publishing:
                task.cancel()
            await asyncio.gather(*publishing, return_exceptions=True)
            while any(len(received.get(subject, [])) < head for subject, head in ledger.heads().items()):
                assert not reading.done(), f"closed before all that was acknowledged had come: {reader.close}"
                await ledger.wait()
            reading.cancel()
        await publisher.close()
        assert await ending == 0
        for sequences in received.values():
            assert sequences == list(range(1, len(sequences) + 1))


async def test_leaving_node_tells_each_client_to_come_back_at_a_time_of_its_own(driver: str) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        running_node(
            {"node.driver": driver, "node.shards": 2, "drain.grace_ms": 500, "drain.spread_ms": 2_000}
        ) as node,
        AsyncExitStack() as stack,
    ):
        clients = [await stack.enter_async_context(raw_client(node.url)) for _ in range(20)]
        for client in clients:
            assert (await client.ask({"id": 1, "subscribe": "/a"}))["ok"] == "subscribed"
        code, *closes = await asyncio.gather(node.terminate(), *(_closes(client) for client in clients))
        assert code == 0
        assert len({wish for wish, _ in closes}) > 1, "everybody would come back at once"
        for _, close in closes:
            assert close is not None and close[0] == 4200
            assert "reconnect_after_ms" in json.loads(close[1])


async def _closes(client: RawClient) -> tuple[int, tuple[int, str] | None]:
    wishes = [read["reconnect_after_ms"] async for read in client.rest() if read.get("notice") == "draining"]
    assert len(wishes) == 1
    return wishes[0], client.close


async def _publish(client: Client, subject: str, ledger: Ledger) -> None:
    for count in range(1_000_000):
        await ledger.write(subject, [subject, count], await client.publish(subject, [subject, count]))


async def _read(reader: RawClient, received: dict[str, list[int]], ledger: Ledger, leaving: asyncio.Event) -> None:
    async for read in reader.rest():
        if "message" in read:
            received.setdefault(read["message"], []).append(int(read["at"].split(".")[1]))
        elif read.get("notice") == "draining":
            assert "reconnect_after_ms" in read
            leaving.set()
        await ledger.notify()
    await ledger.notify()
