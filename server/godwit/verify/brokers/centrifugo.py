"""Centrifugo: WebSocket subscribers that recover by offset and epoch, from a history in its memory.

A subscriber whose place the history no longer holds is told so (`recovered: false`), which is a gap told; what it then missed is
judged by that. Channels have no wildcards. Contents go as base64 in JSON, since its JSON protocol carries nothing else byte for
byte. Needs the program `centrifugo`, version 6, on the path.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import shutil
from pathlib import Path
from typing import Any

import aiohttp
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from ...model import Gap, GapReason, Position
from ..judge.court import Court
from ..judge.finding import Promise
from ..plan import Kind, Plan
from ..reading import Reading
from ..timing import Clock
from .broker import FIRST_EPOCH, BrokerMissing, Numbered, Program, Publishing, Seat, Subscriber
from .post import PostPublisher, channel_of

PROMISES = frozenset({Promise.NO_LOSS, Promise.NO_REPEAT, Promise.ORDER, Promise.CONTENT, Promise.ALIVE})
NOTES = [
    "centrifugo: has no wildcards, merged values or reigns to be judged; it keeps 1,000 messages a channel for 10 minutes, and a "
    "place it no longer has is told, though not how much was missed"
]
CONNECT_ID, SUBSCRIBE_ID = 1, 2
DEAD_S = 5.0
BACK_OFF_S = 0.2


class CentrifugoBroker(Program):
    """One server process."""

    name = "centrifugo"
    kinds = frozenset({Kind.SUBJECT})

    def __init__(self) -> None:
        super().__init__(NOTES, PROMISES)
        if shutil.which("centrifugo") is None:
            raise BrokerMissing("centrifugo is left out: the program is not on the path")

    async def start(self, directory: Path) -> None:
        file = directory / "centrifugo.json"
        file.write_text(json.dumps(settings_at(self.address[1])))
        await self._launch("centrifugo", "--config", str(file))

    def subscriber(self, seat: Seat) -> Subscriber:
        return CentrifugoSubscriber(seat)

    def publishers(self, plan: Plan, ports: list[int], court: Court, clock: Clock) -> list[Publishing]:
        return [CentrifugoPublisher(plan, court, clock, self.address)]


class CentrifugoSubscriber(Reading[asyncio.Event]):
    """Subscribes one channel; comes back with the epoch and offset it had."""

    def __init__(self, seat: Seat) -> None:
        super().__init__(asyncio.Event())
        self.mine, self.witness, self.trace = seat.mine, seat.witness, seat.trace
        self._seat = seat
        self._url = f"ws://127.0.0.1:{seat.port}/connection/websocket"
        self._channel = channel_of(seat.mine.selector)
        self._numbered = Numbered(seat)
        self._place: tuple[str, int] | None = None  # epoch and offset

    async def run(self) -> None:
        while True:
            with contextlib.suppress(OSError, TimeoutError, InvalidHandshake, EOFError):
                await self._live()
            await asyncio.sleep(BACK_OFF_S)

    async def _live(self) -> None:
        async with connect(
            self._url,
            compression=None,
            proxy=None,
            max_size=None,
            ping_interval=DEAD_S / 2,
            ping_timeout=DEAD_S / 2,
            close_timeout=0.2,
        ) as socket:
            is_joined = False
            try:
                await socket.send(self._ask())
                while True:
                    await self._may_read.wait()
                    for line in str(await socket.recv(decode=True)).splitlines():
                        is_joined = await self._take(socket, json.loads(line)) or is_joined
            except ConnectionClosed as closed:
                if is_joined:
                    self._numbered.lost(closed.rcvd.reason if closed.rcvd is not None else "broken")

    def _ask(self) -> str:
        subscribe: dict[str, Any] = {"channel": self._channel}
        if self._place is not None:
            subscribe |= {"recover": True, "epoch": self._place[0], "offset": self._place[1]}
        commands = ({"id": CONNECT_ID, "connect": {}}, {"id": SUBSCRIBE_ID, "subscribe": subscribe})
        return "\n".join(json.dumps(command) for command in commands)

    async def _take(self, socket: ClientConnection, told: dict[str, Any]) -> bool:
        """Whether it is subscribed by this."""
        if not told:
            await socket.send("{}")  # a ping, and its answer
        elif told.get("id") == SUBSCRIBE_ID and "subscribe" in told:
            self._join(told["subscribe"])
            return True
        elif "error" in told or "unsubscribe" in told.get("push", {}):
            await socket.close()  # it comes back from where it stands
        elif "pub" in told.get("push", {}):
            self._read(told["push"]["pub"])
        return False

    def _join(self, reply: dict[str, Any]) -> None:
        self._numbered.joined()
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
        self.witness.gap(self._seat.clock(), gap)

    def _read(self, publication: dict[str, Any]) -> None:
        assert self._place is not None, "it is subscribed"
        self._place = (self._place[0], int(publication["offset"]))
        self._numbered.take(base64.b64decode(publication["data"]))


class CentrifugoPublisher(PostPublisher):
    """Posts to the server's API."""

    def __init__(self, plan: Plan, court: Court, clock: Clock, address: tuple[str, int]) -> None:
        super().__init__(plan, court, clock)
        self._url = f"http://{address[0]}:{address[1]}/api/publish"

    def request(self, subject: str, content: bytes) -> tuple[str, dict[str, Any]]:
        return self._url, {"json": {"channel": channel_of(subject), "data": base64.b64encode(content).decode()}}

    async def is_acknowledged(self, answer: aiohttp.ClientResponse) -> bool:
        return answer.status == 200 and "result" in await answer.json()


def settings_at(port: int) -> dict[str, Any]:
    """As it comes, but open to everybody on loopback and with a history to recover from."""
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
