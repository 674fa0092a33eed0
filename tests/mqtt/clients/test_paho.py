"""Eclipse Paho for Python, with its callbacks and its thread, in 3.1.1 and 5.0, over TCP, WebSocket and TLS."""

from __future__ import annotations

import queue
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from paho.mqtt import client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tests.mqtt.clients.conftest import Doors

pytestmark = pytest.mark.long
WAIT_S = 20
V3, V5 = paho.MQTTv311, paho.MQTTv5


class Device:
    """A client that is connected, and what it was sent."""

    def __init__(
        self, doors: Doors, name: str = "", *, version: int = V5, transport: str = "tcp", tls: bool = False
    ) -> None:
        kind = paho.CallbackAPIVersion.VERSION2
        self.client = paho.Client(kind, name, protocol=version, transport=transport, clean_session=None)  # type: ignore[arg-type]  # a literal of theirs
        self.messages: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self.events: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.client.on_message = lambda _client, _data, message: self.messages.put(message)
        self.client.on_connect = lambda _c, _d, flags, reason, _p: self.events.put(("connect", (flags, reason)))
        self.client.on_subscribe = lambda _c, _d, _id, reasons, _p: self.events.put(("subscribe", reasons))
        self.client.on_disconnect = lambda _c, _d, _flags, reason, _p: self.events.put(("disconnect", reason))
        web = transport == "websockets"
        self.address = {(False, False): doors.mqtt, (False, True): doors.mqtt_tls}.get((web, tls)) or (
            doors.client_tls if tls else doors.client
        )
        if web:
            self.client.ws_set_options("/mqtt")
        if tls:
            self.client.tls_set(str(doors.ca_file))

    def connect(self, **said: Any) -> bool:
        """Returns whether the session was there."""
        self.client.connect("localhost", self.address[1], **said)
        self.client.loop_start()
        flags, reason = self.wait("connect")
        assert not reason.is_failure, reason
        return bool(flags.session_present)

    def wait(self, name: str) -> Any:
        while True:
            event, what = self.events.get(timeout=WAIT_S)
            if event == name:
                return what

    def subscribe(self, *args: Any, **said: Any) -> list[int]:
        self.client.subscribe(*args, **said)
        return [reason.value for reason in self.wait("subscribe")]

    def publish(self, topic: str, payload: bytes, qos: int = 1, **said: Any) -> None:
        published = self.client.publish(topic, payload, qos, **said)
        published.wait_for_publish(WAIT_S)
        assert published.is_published()

    def message(self) -> paho.MQTTMessage:
        return self.messages.get(timeout=WAIT_S)

    def leave(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def cut(self) -> None:
        """As by a lost network: nothing is said."""
        protocol = self.client.socket()
        assert protocol is not None
        (protocol if isinstance(protocol, socket.socket) else protocol._socket).shutdown(socket.SHUT_RDWR)
        self.client.loop_stop()


@pytest.fixture
def device(doors: Doors) -> Iterator[Callable[..., Device]]:
    made: list[Device] = []

    def make(*args: Any, **said: Any) -> Device:
        made.append(Device(doors, *args, **said))
        return made[-1]

    yield make
    for one in made:
        one.leave()


Make = Callable[..., Device]
WAYS = [("tcp", False), ("tcp", True), ("websockets", False), ("websockets", True)]


@pytest.mark.parametrize("version", [V3, V5], ids=["3.1.1", "5.0"])
@pytest.mark.parametrize(("transport", "tls"), WAYS, ids=["tcp", "tls", "websocket", "websocket and tls"])
def test_messages_of_each_qos_arrive_whole_over_every_door(
    device: Make, transport: str, tls: bool, version: int
) -> None:
    one = device(version=version, transport=transport, tls=tls)
    one.connect()
    place = f"paho/{transport}/{tls}/{version}"
    assert one.subscribe(f"{place}/#", 2) == [2]
    payloads = [b"", b"\0\xff" * 40, b"x" * 200_000]
    for qos in range(3):
        for payload in payloads:
            one.publish(f"{place}/{qos}", payload, qos)
    got = [one.message() for _ in range(9)]
    assert [(m.topic, m.qos, bytes(m.payload)) for m in got] == [
        (f"{place}/{qos}", qos, payload) for qos in range(3) for payload in payloads
    ]


def test_a_retained_message_waits_for_who_comes_later(device: Make) -> None:
    one = device()
    one.connect()
    one.publish("paho/retained", b"state", retain=True)
    late = device(version=V3)
    late.connect()
    late.subscribe("paho/+", 1)
    got = late.message()
    assert (got.payload, got.retain) == (b"state", True)
    one.publish("paho/retained", b"", retain=True)


def test_a_will_is_published_when_the_network_is_lost(device: Make) -> None:
    watcher, lost = device(), device()
    watcher.connect()
    watcher.subscribe("paho/will", 1)
    lost.client.will_set("paho/will", b"gone", qos=1)
    lost.connect()
    lost.cut()
    assert watcher.message().payload == b"gone"


@pytest.mark.parametrize("version", [V3, V5], ids=["3.1.1", "5.0"])
def test_a_session_outlives_its_connection(device: Make, version: int) -> None:
    def come(name: str) -> tuple[Device, bool]:
        one = device(name, version=version)
        if version == V3:
            one.client._clean_session = False
            return one, one.connect()
        keep = Properties(PacketTypes.CONNECT)
        keep.SessionExpiryInterval = 600
        return one, one.connect(clean_start=False, properties=keep)

    first, present = come(f"paho-session-{version}")
    assert not present
    first.subscribe(f"paho/session/{version}", 1)
    first.leave()
    sender = device()
    sender.connect()
    for n in range(20):
        sender.publish(f"paho/session/{version}", str(n).encode())
    again, present = come(f"paho-session-{version}")
    assert present
    assert [int(again.message().payload) for _ in range(20)] == list(range(20))


def test_a_shared_subscription_shares_the_work(device: Make) -> None:
    members = [device() for _ in range(3)]
    for member in members:
        member.connect()
        member.subscribe("$share/workers/paho/work/#", 1)
    sender = device()
    sender.connect()
    for n in range(60):
        sender.publish(f"paho/work/{n}", str(n).encode())
    got = [[int(member.message().payload) for _ in range(20)] for member in members]
    assert sorted(n for share in got for n in share) == list(range(60))


def test_a_request_is_answered_where_it_asks_to_be(device: Make) -> None:
    responder, asker = device(), device()
    responder.connect()
    asker.connect()

    def answer(client: paho.Client, _data: Any, message: paho.MQTTMessage) -> None:
        said = Properties(PacketTypes.PUBLISH)
        said.CorrelationData = message.properties.CorrelationData  # type: ignore[union-attr,attr-defined]  # it was sent
        client.publish(message.properties.ResponseTopic, message.payload.upper(), 1, properties=said)  # type: ignore[union-attr,attr-defined]  # likewise

    responder.client.on_message = answer
    responder.subscribe("paho/ask", 1)
    asker.subscribe("paho/answers/1", 1)
    said = Properties(PacketTypes.PUBLISH)
    said.ResponseTopic, said.CorrelationData = "paho/answers/1", b"\1\2"
    said.UserProperty = ("from", "asker")
    asker.publish("paho/ask", b"hello", properties=said)
    got = asker.message()
    assert got.payload == b"HELLO" and got.properties.CorrelationData == b"\1\2"  # type: ignore[union-attr,attr-defined]  # likewise


def test_a_thousand_messages_in_flight_keep_their_order(device: Make) -> None:
    one = device(version=V5)
    one.client.max_inflight_messages_set(500)
    one.connect()
    one.subscribe("paho/many", 2)
    published = [one.client.publish("paho/many", str(n).encode(), 2) for n in range(1000)]
    assert [int(one.message().payload) for _ in range(1000)] == list(range(1000))
    published[-1].wait_for_publish(WAIT_S)


def test_another_connection_of_the_client_takes_over_and_the_first_is_told(device: Make) -> None:
    first = device("paho-twice")
    first.client.reconnect_delay_set(60, 60)
    first.connect()
    device("paho-twice").connect()
    assert first.wait("disconnect").value == 0x8E
