"""The scenarios that all client libraries share (protocol/vectors/scenarios.json), run against a real node.

Each is run by every transport of this client: a WebSocket with JSON, and one with binary frames. A step that this file does not
know fails its scenario; none is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import resource
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, MutableMapping
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from godwit.client import Ack, Client, Gap, JsonText, Message, PositionFile, Settings, Subscription, Watch
from godwit.client.codec.encodings import EncodingName
from godwit.model import Published
from tests.faults.cutting_proxy import CuttingProxy
from tests.node_process import NodeProcess, start_node
from tests.scenario_parts import Store, token_of, write_access
from tests.waiting import until

TABLE = json.loads((Path(__file__).parents[2] / "protocol/vectors/scenarios.json").read_text())["scenarios"]
DEADLINE_S = 120
FULL_BYTES = 10  # of a file, while the disk is full
MEAN_BYTES = 20_000  # of a connection's life, while it cuts
SUBSCRIPTIONS = re.compile(r"^godwit_subscriptions(?:\{[^}]*\})? (\d+)", re.MULTILINE)


class Scene:
    """One node behind a proxy, and the clients and subscriptions of one scenario by name."""

    def __init__(self, encoding: EncodingName, folder: Path, random: Random, scenario: dict[str, Any]) -> None:
        self.encoding, self.folder, self.random = encoding, folder, random
        self.settings = dict(scenario.get("node", {}))
        if scenario.get("keeps"):
            self.settings |= {"node.data_directory": folder / "data", "node.name": "same"}
        self.options = write_access(folder) if scenario.get("tokens") else []
        self.stack = AsyncExitStack()
        self.node: NodeProcess
        self.proxy: CuttingProxy
        self.clients: dict[str, Client] = {}
        self.subscriptions: dict[str, Subscription] = {}
        self.watches: dict[str, Watch] = {}
        self.interest: dict[str, set[str]] = {}  # by watch: what has subscribers
        self.later: dict[str, list[asyncio.Task[Published | None]]] = {}
        self.stores: dict[str, Store] = {}
        self.failures: dict[str, asyncio.Event] = {}  # by client: set when it reports that it could not save
        self.tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Scene:
        self.node = await start_node(self.settings, more=self.options)
        self.proxy = CuttingProxy(self.random, (self.node.host, self.node.port), MEAN_BYTES)
        await self.stack.enter_async_context(self.proxy)
        self.proxy.calm()
        return self

    async def __aexit__(self, *error: object) -> None:
        limit_files(resource.RLIM_INFINITY)
        for client in self.clients.values():
            with contextlib.suppress(OSError):  # of a store that rejects: the scenario looks at it
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
        positions: MutableMapping[str, object] | None = None
        if "positions" in step:
            positions = PositionFile(self.folder / step["positions"])
        elif "store" in step:
            positions = self.stores.setdefault(step["store"], Store(step["store"]))
        failed = self.failures[step["client"]] = asyncio.Event()
        client = Client(
            self.proxy.url,
            encoding=self.encoding,
            settings=settings,
            token=_token(step),
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
        await self._together(step, *(client.publish(step["publish"], number, ack=ack) for number in numbers))

    async def set_token(self, step: dict[str, Any]) -> None:
        await self._together(step, self.clients[step["by"]].set_token(token_of(step["set_token"])))

    async def _together(self, step: dict[str, Any], *calls: Coroutine[Any, Any, Published | None]) -> None:
        self.later[step.get("later", "")] = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0)  # they have begun
        if "later" not in step:
            await self.wait({"await": ""})

    async def wait(self, step: dict[str, Any]) -> None:
        outcomes = await asyncio.gather(*self.later.pop(step["await"]), return_exceptions=True)
        if "error" in step:
            assert {type(each).__name__ for each in outcomes} == {step["error"]}
        else:
            failed = [each for each in outcomes if isinstance(each, BaseException)]
            assert not failed, failed
            assert all(each is None or (isinstance(each, Published) and each.position) for each in outcomes)

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
                self.node = await start_node(self.settings, more=self.options)
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

    async def hung(self, step: dict[str, Any]) -> None:
        await until(self.stores[step["hung"]].hung.is_set)

    async def saved(self, step: dict[str, Any]) -> None:
        await until((self.folder / step["saved"]).exists)

    async def save_failed(self, step: dict[str, Any]) -> None:
        await self.failures[step["save_failed"]].wait()

    async def fails(self, step: dict[str, Any]) -> None:
        name = step["of"]
        calls: dict[str, Callable[[], Any]] = {
            "joined": lambda: self.subscriptions[name].joined(),
            "client": lambda: self.client({**step, "client": "refused"}),
            "close": lambda: self.clients[name].close(),
            "connected": lambda: self.clients[name].connected(),
            "publish": lambda: self.clients[name].publish(step.get("subject", "/a"), 1),
            "publish_large": lambda: self.clients[name].publish("/large", "x" * (step["megabytes"] << 20)),
            "publish_json": lambda: self._publish_json(step),
            "subscribe": lambda: self.clients[name].subscribe("/fails"),
            "set_token": lambda: self.clients[name].set_token(_token({"token_text": "token", **step})),
            "request": lambda: self.clients[name].request("/nobody", 1, timeout_ms=50),
        }
        with pytest.raises(Exception) as raised:
            await calls[step["fails"]]()
        assert type(raised.value).__name__ in (step["error"] if isinstance(step["error"], list) else [step["error"]])

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
        *("watch", "complete", "interest", "publish_text", "gap", "set_token", "hung"),
    )
}


def limit_files(size: int) -> None:
    """No file that this process writes may grow past it."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


async def _drain(messages: AsyncIterator[Message]) -> None:
    async for _ in messages:
        pass


def _token(step: dict[str, Any]) -> Any:
    """A token, or a function that returns one after the other."""
    if "token" in step:
        return token_of(step["token"])
    if "token_texts" in step:
        texts = iter([each if isinstance(each, str) else token_of(each["token"]) for each in step["token_texts"]])
        return lambda: next(texts)
    return step["token_text"] * step.get("repeated", 1) if "token_text" in step else None


@pytest.mark.parametrize("encoding", ["json", "binary"])
@pytest.mark.parametrize("scenario", TABLE, ids=lambda scenario: str(scenario["name"]))
async def test_scenario(scenario: dict[str, Any], encoding: EncodingName, tmp_path: Path, random: Random) -> None:
    async with asyncio.timeout(DEADLINE_S), Scene(encoding, tmp_path, random, scenario) as scene:
        await scene.run(scenario["steps"])
