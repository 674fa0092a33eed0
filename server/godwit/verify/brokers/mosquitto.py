"""Mosquitto, QoS 1 with persistent sessions: MQTT's way to receive every message.

It runs with its default settings (`max_queued_messages` is 1,000). QoS 1 may repeat messages, so duplicates are not
judged. It cannot report gaps, so every dropped message is a violation. Needs the Debian package mosquitto and Python's
paho-mqtt.
"""

from __future__ import annotations

import asyncio
import importlib
import shutil
import threading
from pathlib import Path
from typing import Any

from ..judge.context import CheckContext
from ..judge.finding import Guarantee
from ..plan import Kind, Plan
from ..reading import Reading
from ..timing import Clock
from .broker import BrokerMissing, Numbered, Program, Publishing, SubjectPublisher, Subscriber, SubscriberSetup

GUARANTEES = frozenset({Guarantee.NO_LOSS, Guarantee.ORDER, Guarantee.CONTENT, Guarantee.ALIVE})
KEEPALIVE_S = 30
NOTES = [
    "mosquitto: QoS 1 may deliver again after a reconnect, so duplicates are not judged",
    "mosquitto: gaps, merged values, positions and restarts are not judged; it does not have them",
]


def load_paho() -> Any:
    try:
        return importlib.import_module("paho.mqtt.client")
    except ModuleNotFoundError:
        raise BrokerMissing("the Python package paho-mqtt is not installed") from None


class MosquittoBroker(Program):
    """One broker process."""

    name = "mosquitto QoS 1"
    kinds = frozenset({Kind.SUBJECT, Kind.PATTERN})

    def __init__(self) -> None:
        super().__init__(NOTES, GUARANTEES)
        self._paho = load_paho()
        if shutil.which("mosquitto") is None:
            raise BrokerMissing("mosquitto is not on the PATH")

    async def start(self, directory: Path) -> None:
        file = _write_settings(directory, self.address[1])
        await self._launch("mosquitto", "-c", str(file))

    def subscriber(self, setup: SubscriberSetup) -> Subscriber:
        return MqttSubscriber(setup, self._paho)

    def publishers(self, plan: Plan, ports: list[int], context: CheckContext, clock: Clock) -> list[Publishing]:
        return [MqttPublisher(plan, context, clock, self.address, self._paho)]


class MqttSubscriber(Reading[threading.Event]):
    """A client with a session of its own; the library reconnects."""

    def __init__(self, setup: SubscriberSetup, paho: Any) -> None:
        super().__init__(threading.Event())
        self.mine, self.checker, self.trace = setup.mine, setup.checker, setup.trace
        self._setup, self._paho = setup, paho
        self._numbered = Numbered(setup)

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
        client.connect_async("127.0.0.1", self._setup.port, KEEPALIVE_S)
        client.loop_start()
        try:
            await asyncio.Event().wait()
        finally:
            client.on_disconnect = None
            self._may_read.set()
            client.disconnect()
            await asyncio.to_thread(client.loop_stop)


class MqttPublisher(SubjectPublisher):
    """Publishes with QoS 1, connected directly to the broker without faults."""

    def __init__(self, plan: Plan, context: CheckContext, clock: Clock, address: tuple[str, int], paho: Any) -> None:
        super().__init__(plan, context, clock)
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
    """Write the default settings with this port; the user that the broker changes to can enter the directory."""
    directory.chmod(0o755)
    file = directory / "mosquitto.conf"
    file.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\nlog_type error\n")
    return file


def topic_of(selector: str) -> str:
    """The MQTT topic or filter of a subject or pattern."""
    words = {"*": "+", "**": "#"}
    return "/".join(words.get(segment, segment) for segment in selector.strip("/").split("/"))
