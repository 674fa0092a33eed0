"""Gaps on `$godwit/gaps`, at QoS 0, for clients that subscribe to it (protocol.md, 16.11)."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from tests.mqtt.conftest import Served, serve
from tests.mqtt.packets import DISCONNECT, V3, V5, Peer, connect, packet, publish, unsubscribe

VERSIONS = pytest.mark.parametrize("version", [V3, V5])


@pytest.fixture(scope="module")
def node() -> Iterator[Served]:
    with serve("limits.log_messages_max=10", "limits.stream_window_bytes_max=65536", "node.shards=1") as served:
        yield served


def fall_behind(node: Served, peer: Peer, topic: str) -> int:
    """Publishes until messages of the silent client's are gone; returns how many were."""
    count = 0
    with Peer(node.mqtt) as sender:
        sender.join(connect(""))
        for _ in range(60):
            sender.send(*(publish(topic, count.to_bytes(4) + b"x" * 20_000) for count in range(count, count + 10)))
            count += 10
            sender.quiet()
    return count


@VERSIONS
@pytest.mark.parametrize("selector", ["gap/{}/a", "gap/{}/#"])
def test_15_a_slow_client_is_told_exactly_what_it_missed(node: Served, version: int, selector: str) -> None:
    place = f"{version}-{len(selector)}"
    with Peer(node.mqtt, version) as peer:
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        peer.join(connect(f"slow-{place}", version))
        assert peer.granted(("$godwit/gaps", 2), (selector.format(place), 0)) == b"\0\0"
        count = fall_behind(node, peer, f"gap/{place}/a")
        numbers, missed, last = [], 0, -1
        while last < count - 1:
            message = peer.message()
            if message.topic == "$godwit/gaps":
                reported = json.loads(message.payload)
                assert reported["gap"] == f"/gap/{place}/a" and reported["reason"] == "overrun"
                missed += reported["missed"]
            else:
                last = int.from_bytes(message.payload[:4])
                numbers.append(last)
        assert numbers == sorted(set(numbers)) and missed > 0
        assert len(numbers) + missed == count


@VERSIONS
def test_who_does_not_ask_is_not_told_and_who_asked_may_stop(node: Served, version: int) -> None:
    with Peer(node.mqtt, version) as peer:
        peer.join(connect("", version))
        peer.send(unsubscribe("$godwit/gaps", packet_id=3, version=version))
        peer.expect(packet(0xB0, b"\0\3" + (b"" if version == V3 else b"\0\x11")))
        peer.granted(("$godwit/gaps", 0))
        peer.send(unsubscribe("$godwit/gaps", packet_id=4, version=version))
        peer.expect(packet(0xB0, b"\0\4" + (b"" if version == V3 else b"\0\0")))


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_what_the_node_tells_is_granted_at_the_qos_that_it_comes_at(node: Served, version: int, qos: int) -> None:
    place = f"{version}-{qos}"
    with Peer(node.mqtt, version) as peer:
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        peer.join(connect(f"granted-{place}", version))
        asked = (("$godwit/gaps", qos), ("$godwit/notices", qos), (f"granted/{place}", 0))
        assert peer.granted(*asked) == b"\0\0\0"
        count = fall_behind(node, peer, f"granted/{place}")
        reported, last = [], -1
        while last < count - 1:
            message = peer.message()
            if message.topic == "$godwit/gaps":
                reported.append(message)
            else:
                last = int.from_bytes(message.payload[:4])
        assert reported and {(message.qos, message.packet_id, message.dup) for message in reported} == {(0, 0, False)}


def test_nobody_publishes_there_and_the_wish_is_kept_with_the_session(node: Served) -> None:
    def come() -> Peer:
        peer = Peer(node.mqtt)
        peer.join(connect("keeps", clean=False, properties=b"\x11\0\0\0\x64"))
        return peer

    with come() as peer:
        peer.granted(("$godwit/gaps", 0), properties=b"\x0b\7")
        peer.send(publish("$godwit/gaps", b"forged", 1, 5))
        peer.expect(packet(0x40, b"\0\5\x87"))
        peer.send(DISCONNECT)
        peer.ended()
    with come() as peer:
        peer.send(unsubscribe("$godwit/gaps", packet_id=6))
        peer.expect(packet(0xB0, b"\0\6\0\0"))
