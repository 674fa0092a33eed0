"""The scenarios that all client libraries share (protocol/vectors/scenarios.json), run against a real node.

Each is run by both encodings in `make test-all`, else by JSON. A step that this file does not know fails its scenario; none is left out.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from godwit.client import Ack, Client, Gap, JsonText, Message, PositionFile, Settings, Subscription, Watch
from godwit.client.codec.encodings import EncodingName
from tests.faults.cutting_proxy import CuttingProxy
from tests.node_process import NodeProcess, start_node
from tests.waiting import until

TABLE = json.loads((Path(__file__).parents[2] / "protocol/vectors/scenarios.json").read_text())["scenarios"]
DEADLINE_S = 120
FULL_BYTES = 10  # of a file, while the disk is full
MEAN_BYTES = 20_000  # of a connection's life, while it cuts
SUBSCRIPTIONS = re.compile(r"^godwit_subscriptions(?:\{[^}]*\})? (\d+)", re.MULTILINE)


class Scene:
    """One node behind a proxy, and the clients and subscriptions of one scenario by name."""

    def __init__(self, encoding: EncodingName, folder: Path, random: Random, settings: dict[str, Any]) -> None:
        self.encoding, self.folder, self.random, self.settings = encoding, folder, random, settings
        self.stack = AsyncExitStack()
        self.node: NodeProcess
        self.proxy: CuttingProxy
        self.clients: dict[str, Client] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.watches: dict[str, Watch] = {}
        self.interest: dict[str, set[str]] = {}  # by watch: what has subscribers
        self.later: dict[str, asyncio.Future[Any]] = {}
        self.failures: dict[str, asyncio.Event] = {}  # by client: set when it tells that it could not save
        self.tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Scene:
        self.node = await start_node(self.settings)
        self.proxy = CuttingProxy(self.random, (self.node.host, self.node.port), MEAN_BYTES)
        await self.stack.enter_async_context(self.proxy)
        self.proxy.calm()
        return self

    async def __aexit__(self, *error: object) -> None:
        limit_files(resource.RLIM_INFINITY)
        for client in self.clients.values():
            await client.close()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.stack.aclose()
        await self.node.kill()

    async def run(self, steps: list[dict[str, Any]], number: int = 0) -> None:
        for step in steps:
            [verb] = [name for name in step if name in STEPS]
            await STEPS[verb](self, json.loads(json.dumps(step).replace("{n}", str(number))))

    async def client(self, step: dict[str, Any]) -> None:
        settings = Settings(
            reconnect_first_ms=4,
            reconnect_max_ms=40,
            answer_timeout_ms=2_000,
            positions_save_ms=50,
            items_max=step.get("items_max", 1_000),
            frame_bytes_max=step.get("frame_bytes_max", 16 << 20),
        )
        positions = PositionFile(self.folder / step["positions"]) if "positions" in step else None
        failed = self.failures[step["client"]] = asyncio.Event()
        client = Client(
            self.proxy.url,
            encoding=self.encoding,
            settings=settings,
            token=step.get("token"),
            positions=positions,
            on_save_failed=lambda _: failed.set(),
        )
        self.clients[step["client"]] = await client.__aenter__()

    async def subscribe(self, step: dict[str, Any]) -> None:
        found = self.clients[step["by"]].subscribe(step["subscribe"], snapshot=step.get("snapshot", True))
        self.subscriptions[step["as"]] = found
        if step.get("reading"):
            self.tasks.append(asyncio.create_task(_drain(found)))
            await asyncio.sleep(0)
        if step.get("joined", True):
            await found.joined()

    async def publish(self, step: dict[str, Any]) -> None:
        ack = Ack(step["ack"]) if "ack" in step else None
        client, numbers = self.clients[step["by"]], range(step["from"], step["upto"])
        together = asyncio.gather(*(client.publish(step["publish"], number, ack=ack) for number in numbers))
        if "later" in step:
            self.later[step["later"]] = together
            await asyncio.sleep(0)
        else:
            assert all(each.position for each in await together)

    async def wait(self, step: dict[str, Any]) -> None:
        assert all(each.position for each in await self.later.pop(step["await"]))

    async def read(self, step: dict[str, Any]) -> None:
        found, wanted = self.subscriptions[step["read"]], [*range(step["from"], step["upto"])]
        assert [(await anext(found)).json() for _ in wanted] == wanted

    async def handled(self, step: dict[str, Any]) -> None:
        self.subscriptions[step["handled"]].handled()

    async def close(self, step: dict[str, Any]) -> None:
        name = step["close"]
        await (self.clients[name] if name in self.clients else self.subscriptions[name]).close()

    async def watch(self, step: dict[str, Any]) -> None:
        watch = self.watches[step["as"]] = self.clients[step["by"]].watch(step["watch"])
        known = self.interest[step["as"]] = set()

        async def read() -> None:
            async for interest in watch:
                (known.add if interest.has_subscribers else known.discard)(interest.subject)

        self.tasks.append(asyncio.create_task(read()))

    async def complete(self, step: dict[str, Any]) -> None:
        await self.watches[step["complete"]].complete()

    async def known_interest(self, step: dict[str, Any]) -> None:
        await until(lambda: self.interest[step["interest"]] == set(step["known"]))

    async def publish_text(self, step: dict[str, Any]) -> None:
        assert (await self.clients[step["by"]].publish(step["publish_text"], "x" * step["characters"])).position

    async def gap(self, step: dict[str, Any]) -> None:
        async for item in self.subscriptions[step["gap"]].items():
            if isinstance(item, Gap):
                assert item.reason == step["reason"]
                return

    async def fault(self, step: dict[str, Any]) -> None:
        match step["fault"]:
            case "cuts":
                self.proxy.cut()
            case "calm":
                self.proxy.calm()
            case "kill":
                await self.node.kill()
                self.node = await start_node(self.settings)
                self.proxy.redirect((self.node.host, self.node.port))
            case "freeze":
                self.node.process.send_signal(signal.SIGSTOP)
                await until(lambda: not any(client.is_connected for client in self.clients.values()))
            case "thaw":
                self.node.process.send_signal(signal.SIGCONT)
            case "full":
                limit_files(FULL_BYTES)
            case "room":
                limit_files(resource.RLIM_INFINITY)
            case other:
                raise AssertionError(f"no fault {other}")

    async def saved(self, step: dict[str, Any]) -> None:
        await until((self.folder / step["saved"]).exists)

    async def save_failed(self, step: dict[str, Any]) -> None:
        await self.failures[step["save_failed"]].wait()

    async def fails(self, step: dict[str, Any]) -> None:
        name = step["of"]
        calls: dict[str, Callable[[], Any]] = {
            "joined": lambda: self.subscriptions[name].joined(),
            "publish": lambda: self.clients[name].publish("/a", 1),
            "publish_large": lambda: self.clients[name].publish("/large", "x" * (step["megabytes"] << 20)),
            "publish_json": lambda: self._publish_json(step),
            "subscribe": lambda: self.clients[name].subscribe("/fails"),
            "set_token": lambda: self.clients[name].set_token("token"),
            "request": lambda: self.clients[name].request("/nobody", 1, timeout_ms=50),
        }
        with pytest.raises(Exception) as told:
            await calls[step["fails"]]()
        assert type(told.value).__name__ == step["error"]

    async def _publish_json(self, step: dict[str, Any]) -> None:
        client = self.clients[step["of"]]
        numbers = range(step["from"], step["upto"])
        publishing = asyncio.gather(*(client.publish(step["beside"], number) for number in numbers))
        try:
            await client.publish("/unreadable", JsonText(step["json"]))
        finally:
            assert all(each.position for each in await publishing)

    async def counts(self, step: dict[str, Any]) -> None:
        counts = self.subscriptions[step["counts"]].counts
        assert all(counts[name] <= step[name] for name in ("missing", "gaps"))

    async def at_node(self, step: dict[str, Any]) -> None:
        async with aiohttp.ClientSession() as http, http.get(f"{self.node.admin_url}/metrics") as answer:
            assert sum(map(int, SUBSCRIPTIONS.findall(await answer.text()))) == step["at_node"]

    async def connections(self, step: dict[str, Any]) -> None:
        await until(lambda: self.proxy.open <= step["connections"])

    async def repeat(self, step: dict[str, Any]) -> None:
        for number in range(step["repeat"]):
            await self.run(json.loads(json.dumps(step["steps"])), number)

    async def answer(self, step: dict[str, Any]) -> None:
        client = self.clients[step["by"]]
        asked = client.subscribe(step["answer"], snapshot=False)
        await asked.joined()

        async def double() -> None:
            async for message in asked:
                await client.reply(message, 2 * message.json())

        self.tasks.append(asyncio.create_task(double()))

    async def request(self, step: dict[str, Any]) -> None:
        reply = await self.clients[step["by"]].request(step["request"], step["content"], timeout_ms=30_000)
        assert reply.json() == step["reply"]


STEPS: dict[str, Callable[[Scene, dict[str, Any]], Awaitable[None]]] = {
    name: getattr(Scene, {"await": "wait", "interest": "known_interest"}.get(name, name))
    for name in (
        *("client", "subscribe", "publish", "await", "read", "handled", "close", "fault", "fails", "counts"),
        *("at_node", "repeat", "answer", "request", "saved", "save_failed", "connections"),
        *("watch", "complete", "interest", "publish_text", "gap"),
    )
}


def limit_files(size: int) -> None:
    """No file that this process writes may grow past it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


async def _drain(messages: AsyncIterator[Message]) -> None:
    async for _ in messages:
        pass


@pytest.mark.parametrize("encoding", ["json", pytest.param("binary", marks=pytest.mark.long)])
@pytest.mark.parametrize("scenario", TABLE, ids=lambda scenario: str(scenario["name"]))
async def test_scenario(scenario: dict[str, Any], encoding: EncodingName, tmp_path: Path, random: Random) -> None:
    settings = dict(scenario.get("node", {}))
    if scenario.get("keeps"):
        settings |= {"node.data_directory": tmp_path / "data", "node.name": "same"}
    async with asyncio.timeout(DEADLINE_S), Scene(encoding, tmp_path, random, settings) as scene:
        await scene.run(scenario["steps"])
