"""A publish whose answer was lost becomes one message, even if many others publish before the client reconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from godwit.client import AnswerLost, Client, Settings
from godwit.client.codec.encodings import EncodingName
from tests.faults.kept import read_all
from tests.node_process import NodeProcess, running_node
from tests.raw_client import raw_client

OTHERS = 110_000  # more than idempotency_keys_max remembers
BATCH = 1_000
KILLS = 3
QUICK = Settings(reconnect_first_ms=5, reconnect_max_ms=20)


class Line:
    """A connection to the node whose answers can be kept back, and that can be cut."""

    def __init__(self, node: NodeProcess) -> None:
        self.node = node
        self.is_mute = self.is_down = False
        self.withheld = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []
        self.url = ""

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection(self.node.host, self.node.port)
        self._writers += [writer, far_writer]
        await asyncio.gather(self._forward(reader, far_writer, False), self._forward(far_reader, writer, True))

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_back: bool) -> None:
        try:
            while chunk := await reader.read(65_536):
                if is_back and self.is_mute:
                    self.withheld.set()
                else:
                    writer.write(chunk)
        except OSError:
            pass
        finally:
            writer.close()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


@asynccontextmanager
async def line_to(node: NodeProcess) -> AsyncIterator[Line]:
    line = Line(node)
    async with await asyncio.start_server(line.carry, "127.0.0.1", 0) as server:
        line.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield line
        line.cut()


async def publish_others(url: str) -> None:
    async with raw_client(url) as other:
        for batch in range(OTHERS // BATCH):
            keys = [f"another-publisher-{batch}-{number}" for number in range(BATCH)]
            commands = [{"publish": "/others", "content": 1, "key": key} for key in keys]
            await other.send(*commands[:-1], {"id": 1, **commands[-1]})
            assert "at" in (await other.receive() or {})


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_a_publish_whose_answer_was_lost_is_one_message_after_110_000_others(encoding: EncodingName) -> None:
    async with (
        asyncio.timeout(100),
        running_node() as node,
        line_to(node) as line,
        Client(line.url, encoding=encoding, settings=QUICK) as client,
    ):
        await client.publish("/a", 0)
        line.is_mute = True
        publish = asyncio.create_task(client.publish("/a", 1))
        await line.withheld.wait()
        line.is_down = True
        line.cut()
        await publish_others(node.url)
        line.is_mute = line.is_down = False
        published = await publish
        assert published.is_duplicate
        last = await client.publish("/a", 2)
        assert last.position is not None and last.position.sequence == 3


async def test_a_publish_that_a_node_of_no_memory_cannot_know_is_sent_anew_or_raised() -> None:
    settings = Settings(reconnect_first_ms=5, reconnect_max_ms=20, on_unknown_publish="raise")
    async with (
        asyncio.timeout(60),
        running_node() as first,
        running_node() as second,
        line_to(first) as line,
        Client(line.url, settings=settings) as client,
        Client(line.url, settings=QUICK) as careless,
    ):
        await asyncio.gather(client.connected(), careless.connected())
        line.is_mute = True
        publishes = []
        for each in (client, careless):
            line.withheld.clear()
            publishes.append(asyncio.create_task(each.publish("/a", 1)))
            await line.withheld.wait()
        line.is_mute, line.node = False, second
        line.cut()
        with pytest.raises(AnswerLost):
            await publishes[0]
        published = await publishes[1]
        assert published.position is not None and published.position.sequence == 1
        assert not published.is_duplicate


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_a_publish_is_one_message_when_its_answer_is_lost_and_the_node_killed(
    tmp_path: Path, encoding: EncodingName
) -> None:
    settings: dict[str, object] = {"node.data_directory": tmp_path}
    async with asyncio.timeout(100), AsyncExitStack() as nodes:
        node = await nodes.enter_async_context(running_node(settings))
        async with line_to(node) as line, Client(line.url, encoding=encoding, settings=QUICK) as client:
            await client.publish("/a", 0, ack="disk")
            for number in range(1, KILLS + 1):
                line.withheld.clear()
                line.is_mute = True
                publish = asyncio.create_task(client.publish("/a", number, ack="disk"))
                await line.withheld.wait()
                line.is_down = True
                await node.kill()
                line.cut()
                line.node = node = await nodes.enter_async_context(running_node(settings))
                line.is_mute = line.is_down = False
                published = await publish
                assert published.is_duplicate
            await client.publish("/a", KILLS + 1)
        kept = await read_all(node, "/a")
    assert [content for _, content in kept] == list(range(KILLS + 2))
