"""With `mqtt_ack = "disk"` QoS 2 is exactly once across `kill -9` at any step of the exchange, in both directions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.mqtt.conftest import Served, serve
from tests.mqtt.packets import V3, V5, Message, Peer, ack, connect, publish, unsubscribe

PUBREC, PUBREL, PUBCOMP = 5, 6, 7
VERSIONS = pytest.mark.parametrize("version", [V3, V5])


@contextmanager
def node(folder: Path) -> Iterator[Served]:
    config = folder / "node.toml"
    config.write_text('[patterns."/r/**"]\nmqtt_ack = "disk"\n')
    with serve(f"node.data_directory={folder}", "node.shards=2", flags=("--config", str(config))) as served:
        yield served


@contextmanager
def killed(folder: Path) -> Iterator[Served]:
    """A node that is killed as the block ends."""
    with node(folder) as served:
        yield served
        served.process.kill()
        served.process.wait()


def come(peer: Peer, name: str) -> bool:
    """Joins with a session that stays; true when it was there."""
    properties = b"\x11" + (100).to_bytes(4) if peer.version == V5 else b""
    return bool(peer.join(connect(name, peer.version, clean=False, properties=properties))[2] & 1)


def answered(peer: Peer, kind: int, packet_id: int) -> None:
    got = peer.receive()
    assert (got[0] >> 4, got[2:4]) == (kind, packet_id.to_bytes(2)), got.hex(" ")
    assert len(got) == 4 or got[4] == 0, got.hex(" ")


def exchange(peer: Peer, payload: bytes, packet_id: int) -> None:
    """Publishes once, to the end."""
    peer.send(publish("r/a", payload, 2, packet_id, peer.version))
    answered(peer, PUBREC, packet_id)
    peer.send(ack(PUBREL, packet_id))
    answered(peer, PUBCOMP, packet_id)


def kept(served: Served) -> list[bytes]:
    """What the node has of the topic: every message, by a plain read."""
    host, port = served["client"]
    with urlopen(f"http://{host}:{port}/v1/messages?subject=/r/a&last=100") as answer:
        events = json.load(answer)
    return [event["text"].encode() for event in events if "epochs" not in event]


def take(peer: Peer) -> Message:
    """The next message, taken to the end."""
    message = peer.message()
    assert message.qos == 2
    peer.send(ack(PUBREC, message.packet_id))
    answered(peer, PUBREL, message.packet_id)
    peer.send(ack(PUBCOMP, message.packet_id))
    return message


@VERSIONS
@pytest.mark.parametrize("times", [1, 3])
def test_a_publish_that_was_received_is_one_message_however_often_it_comes_again(
    tmp_path: Path, version: int, times: int
) -> None:
    with killed(tmp_path) as served, Peer(served.mqtt, version) as peer:
        come(peer, "sender")
        exchange(peer, b"first", 6)
        peer.send(publish("r/a", b"once", 2, 7, version))
        answered(peer, PUBREC, 7)
    for _ in range(times):
        with killed(tmp_path) as served, Peer(served.mqtt, version) as peer:
            assert come(peer, "sender")
            peer.send(publish("r/a", b"once", 2, 7, version, dup=True))
            answered(peer, PUBREC, 7)
    with node(tmp_path) as served, Peer(served.mqtt, version) as peer:
        assert come(peer, "sender")
        peer.send(ack(PUBREL, 7))
        answered(peer, PUBCOMP, 7)
        assert kept(served) == [b"first", b"once"]


@VERSIONS
def test_a_publish_that_nobody_answered_is_one_message_whether_it_was_written_or_not(
    tmp_path: Path, version: int
) -> None:
    for number in range(1, 9):
        with killed(tmp_path) as served, Peer(served.mqtt, version) as peer:
            come(peer, "sender")
            for earlier in range(number):  # from the first on the session is known
                exchange(peer, b"%d.%d" % (number, earlier), 100 + earlier)
            peer.send(publish("r/a", b"%d" % number, 2, number, version))
        with node(tmp_path) as served, Peer(served.mqtt, version) as peer:
            assert come(peer, "sender")
            peer.send(publish("r/a", b"%d" % number, 2, number, version, dup=True))
            answered(peer, PUBREC, number)
            peer.send(ack(PUBREL, number))
            answered(peer, PUBCOMP, number)
            got = kept(served)
            assert len(got) == len(set(got)) == number * (number + 3) // 2, (number, got)


@VERSIONS
def test_an_identifier_that_was_released_is_free_for_the_next_message_after_a_kill(
    tmp_path: Path, version: int
) -> None:
    with killed(tmp_path) as served, Peer(served.mqtt, version) as peer:
        come(peer, "sender")
        exchange(peer, b"same", 7)
    with killed(tmp_path) as served, Peer(served.mqtt, version) as peer:
        # The client sent the next one under the same identifier, with the same content, and says that this is a repeat.
        assert come(peer, "sender")
        peer.send(publish("r/a", b"same", 2, 7, version, dup=True))
        answered(peer, PUBREC, 7)
        peer.send(ack(PUBREL, 7))
    with node(tmp_path) as served, Peer(served.mqtt, version) as peer:
        assert come(peer, "sender")
        peer.send(ack(PUBREL, 7))
        assert peer.receive()[0] >> 4 == PUBCOMP
        assert kept(served) == [b"same", b"same"]


@VERSIONS
@pytest.mark.parametrize("selector", ["r/a", "r/#"])
def test_a_message_that_a_subscriber_completed_does_not_come_again(tmp_path: Path, version: int, selector: str) -> None:
    with killed(tmp_path) as served, Peer(served.mqtt, version) as peer, Peer(served.mqtt, version) as sender:
        come(peer, "device")
        peer.granted((selector, 2))
        come(sender, "sender")
        for number in range(20):
            exchange(sender, b"%d" % number, 9)
            assert take(peer).payload == b"%d" % number
    with killed(tmp_path) as served, Peer(served.mqtt, version) as peer:
        assert come(peer, "device")
        # The last PUBCOMP may not have been seen.
        peer.send(b"\xc0\0")
        while (got := peer.receive()) != b"\xd0\0":
            assert got[0] >> 4 == PUBREL, got.hex(" ")
            peer.send(ack(PUBCOMP, int.from_bytes(got[2:4])))
        with Peer(served.mqtt, version) as sender:
            assert come(sender, "sender")
            exchange(sender, b"new", 9)
        assert take(peer).payload == b"new"


@VERSIONS
@pytest.mark.parametrize("selector", ["r/a", "r/#"])
def test_what_a_subscriber_was_sent_comes_again_under_its_identifier(
    tmp_path: Path, version: int, selector: str
) -> None:
    with killed(tmp_path) as served, Peer(served.mqtt, version) as peer, Peer(served.mqtt, version) as sender:
        come(peer, "device")
        peer.granted((selector, 2))
        come(sender, "sender")
        for number in range(6):
            exchange(sender, b"%d" % number, 9)
        got = [peer.message() for _ in range(6)]
        peer.send(*(ack(PUBREC, message.packet_id) for message in got[:2]))
        for message in got[:2]:
            answered(peer, PUBREL, message.packet_id)
    with killed(tmp_path) as served, Peer(served.mqtt, version) as peer:
        assert come(peer, "device")
        for message in got[:2]:
            answered(peer, PUBREL, message.packet_id)
        again = [peer.message() for _ in range(4)]
        assert [(one.payload, one.packet_id, one.dup) for one in again] == [
            (one.payload, one.packet_id, True) for one in got[2:]
        ]
        with Peer(served.mqtt, version) as sender:
            assert come(sender, "sender")
            exchange(sender, b"new", 9)
        new = peer.message()
        assert new.payload == b"new"
        assert new.packet_id not in {message.packet_id for message in got}


@VERSIONS
def test_a_group_deals_nothing_again_that_a_member_completed(tmp_path: Path, version: int) -> None:
    with (
        killed(tmp_path) as served,
        Peer(served.mqtt, version) as slow,
        Peer(served.mqtt, version) as quick,
        Peer(served.mqtt, version) as sender,
    ):
        come(slow, "slow")
        come(quick, "quick")
        come(sender, "sender")
        slow.granted(("$share/g/r/#", 2))
        quick.granted(("$share/g/r/#", 2))
        for number in range(12):
            exchange(sender, b"%d" % number, 9)
        stuck = [slow.message() for _ in range(6)]
        done = [quick.message() for _ in range(6)]
        for kind, answer in ((PUBREC, PUBREL), (PUBCOMP, 0)):
            for message in done:
                quick.send(ack(kind, message.packet_id))
                if answer:
                    answered(quick, answer, message.packet_id)
        slow.quiet()
        quick.quiet()
        served.process.kill()
        served.process.wait()
    assert {one.payload for one in stuck + done} == {b"%d" % number for number in range(12)}
    with node(tmp_path) as served, Peer(served.mqtt, version) as slow, Peer(served.mqtt, version) as quick:
        assert come(quick, "quick")
        quick.send(b"\xc0\0")
        while (got := quick.receive()) != b"\xd0\0":
            assert got[0] >> 4 == PUBREL, got.hex(" ")
            quick.send(ack(PUBCOMP, int.from_bytes(got[2:4])))
        assert come(slow, "slow")
        again = [slow.message() for _ in stuck]
        assert [(one.payload, one.packet_id) for one in again] == [(one.payload, one.packet_id) for one in stuck]
        slow.quiet()
        quick.quiet()


@VERSIONS
@pytest.mark.parametrize("qos", [1, 2])
def test_a_subscription_that_was_granted_or_ended_is_so_after_a_kill(tmp_path: Path, version: int, qos: int) -> None:
    with killed(tmp_path) as served, Peer(served.mqtt, version) as peer:
        come(peer, "device")
        peer.granted(("r/a", qos), ("r/b", qos))
    with killed(tmp_path) as served, Peer(served.mqtt, version) as peer:
        assert come(peer, "device")
        peer.send(unsubscribe("r/a", packet_id=3, version=version))
        assert peer.receive()[0] == 0xB0
        peer.granted(("r/c", qos))
    with node(tmp_path) as served, Peer(served.mqtt, version) as peer, Peer(served.mqtt, version) as sender:
        assert come(peer, "device")
        sender.join(connect("", version))
        for topic in ("r/a", "r/b", "r/c"):
            sender.send(publish(topic, b"", 1, 1, version))
            assert sender.receive()[0] >> 4 == 4
        assert [peer.message().topic for _ in range(2)] == ["r/b", "r/c"]
        peer.up_to_date("r/c")
