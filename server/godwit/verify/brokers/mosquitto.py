"""Mosquitto, QoS 1 with sessions that outlive their connections: what MQTT offers to one who wants every message.

It runs as it comes (`max_queued_messages` is its default of 1,000). QoS 1 may repeat, so repeats are not judged; it has no gaps to tell,
so whatever is dropped is dropped in silence, which is judged. Needs the Debian package mosquitto and Python's paho-mqtt.
"""

from __future__ import annotations

import asyncio
import importlib
import shutil
import threading
from pathlib import Path
from typing import Any

from ..judge.court import Court
from ..judge.finding import Promise
from ..plan import Kind, Plan
from ..reading import Reading
from ..timing import Clock
from .broker import BrokerMissing, Numbered, Program, Publishing, Seat, SubjectPublisher, Subscriber

PROMISES = frozenset({Promise.NO_LOSS, Promise.ORDER, Promise.CONTENT, Promise.ALIVE})
KEEPALIVE_S = 30
NOTES = [
    "mosquitto: QoS 1 may repeat after a reconnect, so repeats are not judged",
    "mosquitto: has no gaps, merged values, positions or runs to be judged",
]


def load_paho() -> Any:
    try:
        return importlib.import_module("paho.mqtt.client")
    except ModuleNotFoundError:
        raise BrokerMissing("mosquitto is left out: Python's paho-mqtt is not installed") from None


class MosquittoBroker(Program):
    """One broker process."""

    name = "mosquitto QoS 1"
    kinds = frozenset({Kind.SUBJECT, Kind.PATTERN})

    def __init__(self) -> None:
        super().__init__(NOTES, PROMISES)
        self._paho = load_paho()
        if shutil.which("mosquitto") is None:
            raise BrokerMissing("mosquitto is left out: the program is not on the path")

    async def start(self, directory: Path) -> None:
        file = _write_settings(directory, self.address[1])
        await self._launch("mosquitto", "-c", str(file))

    def subscriber(self, seat: Seat) -> Subscriber:
        return MqttSubscriber(seat, self._paho)

    def publishers(self, plan: Plan, ports: list[int], court: Court, clock: Clock) -> list[Publishing]:
        return [MqttPublisher(plan, court, clock, self.address, self._paho)]


class MqttSubscriber(Reading[threading.Event]):
    """A client with a session of its own; the library comes back by itself."""

    def __init__(self, seat: Seat, paho: Any) -> None:
        super().__init__(threading.Event())
        self.mine, self.witness, self.trace = seat.mine, seat.witness, seat.trace
        self._seat, self._paho = seat, paho
        self._numbered = Numbered(seat)

    @property
    def has_joined(self) -> asyncio.Event:
        return self._numbered.has_joined

    async def run(self) -> None:
        loop, paho = asyncio.get_running_loop(), self._paho
        client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=self.mine.name, clean_session=False)

        def connected(*_: object) -> None:
            client.subscribe(topic_of(self.mine.selector), qos=1)

        def took(_client: object, _data: object, message: Any) -> None:
            self._may_read.wait()
            loop.call_soon_threadsafe(self._numbered.take, message.payload)

        client.on_connect = connected
        client.on_subscribe = lambda *_: loop.call_soon_threadsafe(self._numbered.joined)
        client.on_disconnect = lambda *_: loop.call_soon_threadsafe(self._numbered.lost, "broken")
        client.on_message = took
        client.reconnect_delay_set(1, 1)
        client.connect_async("127.0.0.1", self._seat.port, KEEPALIVE_S)
        client.loop_start()
        try:
            await asyncio.Event().wait()
        finally:
            client.on_disconnect = None
            self._may_read.set()
            client.disconnect()
            await asyncio.to_thread(client.loop_stop)


class MqttPublisher(SubjectPublisher):
    """Publishes with QoS 1 straight to the broker: nothing is done to its connection."""

    def __init__(self, plan: Plan, court: Court, clock: Clock, address: tuple[str, int], paho: Any) -> None:
        super().__init__(plan, court, clock)
        self._address = address
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id="publisher")
        self._waiting: dict[int, asyncio.Future[bool]] = {}

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        is_open = asyncio.Event()
        self._client.on_connect = lambda *_: loop.call_soon_threadsafe(is_open.set)
        self._client.on_publish = lambda _c, _d, mid, *_: loop.call_soon_threadsafe(self._answered, mid)
        self._client.connect_async(*self._address)
        self._client.loop_start()
        await is_open.wait()

    async def send(self, subject: str, content: bytes) -> bool:
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[self._client.publish(topic_of(subject), content, qos=1).mid] = answer
        return await answer

    def _answered(self, mid: int) -> None:
        answer = self._waiting.pop(mid, None)
        if answer is not None and not answer.done():
            answer.set_result(True)

    async def close(self) -> None:
        self._client.disconnect()
        await asyncio.to_thread(self._client.loop_stop)


def _write_settings(directory: Path, port: int) -> Path:
    """As it comes, but for its port; the directory may be entered by the user it changes to."""
    directory.chmod(0o755)
    file = directory / "mosquitto.conf"
    file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nlog_type error\n")
    return file


def topic_of(selector: str) -> str:
    """A subject or pattern as MQTT writes it."""
    words = {"*": "+", "**": "#"}
    return "/".join(words.get(segment, segment) for segment in selector.strip("/").split("/"))
