"""Centrifugo: WebSocket subscribers that recover by offset and epoch, from a history in its memory.

If the history no longer has a subscriber's position, the subscriber receives `recovered: false`, which counts as a
reported gap. Channels have no wildcards. Contents are base64 in JSON, because its JSON protocol does not carry bytes
unchanged. Needs the program `centrifugo`, version 6, on the path. It follows Centrifugo's documentation and is tested
with a simulated server, not with the program itself.
"""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import aiohttp
from websockets.asyncio.client import ClientConnection

from ...model import Gap, GapReason, Position
from ..judge.context import CheckContext
from ..judge.finding import Guarantee
from ..plan import Kind, Plan
from ..timing import Clock
from .broker import FIRST_EPOCH, BrokerMissing, Program, Publishing, Subscriber, SubscriberSetup
from .post import PostPublisher, channel_of
from .websocket import WebsocketSubscriber

GUARANTEES = frozenset({Guarantee.NO_LOSS, Guarantee.NO_REPEAT, Guarantee.ORDER, Guarantee.CONTENT, Guarantee.ALIVE})
NOTES = [
    "centrifugo: wildcards, merged values and restarts are not judged; it keeps 1,000 messages per channel for 10 minutes, "
    "and its gaps have no count",
    "centrifugo: this driver follows the documentation and was tested with a substitute only; check its findings by hand",
]
CONNECT_ID, SUBSCRIBE_ID = 1, 2


class CentrifugoBroker(Program):
    """One server process."""

    name = "centrifugo"
    kinds = frozenset({Kind.SUBJECT})

    def __init__(self) -> None:
        super().__init__(NOTES, GUARANTEES)
        if shutil.which("centrifugo") is None:
            raise BrokerMissing("centrifugo is not on the PATH")

    async def start(self, directory: Path) -> None:
        file = directory / "centrifugo.json"
        file.write_text(json.dumps(settings_at(self.address[1])))
        await self._launch("centrifugo", "--config", str(file))

    def subscriber(self, setup: SubscriberSetup) -> Subscriber:
        return CentrifugoSubscriber(setup)

    def publishers(self, plan: Plan, ports: list[int], context: CheckContext, clock: Clock) -> list[Publishing]:
        return [CentrifugoPublisher(plan, context, clock, self.address)]


class CentrifugoSubscriber(WebsocketSubscriber):
    """Subscribes to one channel; reconnects with its last epoch and offset."""

    path = "/connection/websocket"
    _place: tuple[str, int] | None = None  # epoch and offset

    async def greet(self, socket: ClientConnection) -> None:
        subscribe: dict[str, Any] = {"channel": channel_of(self.mine.selector)}
        if self._place is not None:
            subscribe |= {"recover": True, "epoch": self._place[0], "offset": self._place[1]}
        commands = ({"id": CONNECT_ID, "connect": {}}, {"id": SUBSCRIBE_ID, "subscribe": subscribe})
        await socket.send("\n".join(json.dumps(command) for command in commands))

    async def take(self, socket: ClientConnection, received: str | bytes) -> None:
        for line in received.splitlines():
            await self._take(socket, json.loads(line))

    async def _take(self, socket: ClientConnection, received: dict[str, Any]) -> None:
        if not received:
            await socket.send("{}")  # a ping, and its answer
        elif received.get("id") == SUBSCRIBE_ID and "subscribe" in received:
            self._join(received["subscribe"])
        elif "error" in received or "unsubscribe" in received.get("push", {}):
            await socket.close()  # it resumes from its position
        elif "pub" in received.get("push", {}):
            self._read(received["push"]["pub"])

    def _join(self, reply: dict[str, Any]) -> None:
        self.joined()
        epoch, offset = str(reply.get("epoch", "")), int(reply.get("offset", 0))
        before, self._place = self._place, (epoch, offset)
        if before is None:
            return
        if reply.get("recovered"):
            for publication in reply.get("publications", ()):
                self._read(publication)
            return
        # one publisher a channel: its offsets are the publisher's numbers
        at, after = Position(FIRST_EPOCH, offset), Position(FIRST_EPOCH, before[1])
        gap = Gap(self.mine.selector, at, after, GapReason.UNKNOWN, offset - before[1])
        self.checker.gap(self.setup.clock(), gap)

    def _read(self, publication: dict[str, Any]) -> None:
        assert self._place is not None, "it is subscribed"
        self._place = (self._place[0], int(publication["offset"]))
        self.numbered.take(base64.b64decode(publication["data"]))


class CentrifugoPublisher(PostPublisher):
    """Posts to the server's API."""

    def __init__(self, plan: Plan, context: CheckContext, clock: Clock, address: tuple[str, int]) -> None:
        super().__init__(plan, context, clock)
        self._url = f"http://{address[0]}:{address[1]}/api/publish"

    def request(self, subject: str, content: bytes) -> tuple[str, dict[str, Any]]:
        return self._url, {"json": {"channel": channel_of(subject), "data": base64.b64encode(content).decode()}}

    async def is_acknowledged(self, answer: aiohttp.ClientResponse) -> bool:
        return answer.status == 200 and "result" in await answer.json()


def settings_at(port: int) -> dict[str, Any]:
    """The default settings, with access for everybody on loopback and a history for recovery."""
    return {
        "http_server": {"address": "127.0.0.1", "port": port},
        "http_api": {"insecure": True},
        "client": {"insecure": True, "recovery_max_publication_limit": 1_000},
        "log": {"level": "error"},
        "channel": {
            "without_namespace": {
                "history_size": 1_000,
                "history_ttl": "10m",
                "force_recovery": True,
                "force_positioning": True,
            }
        },
    }
