"""Sessions that outlive their connections [MQTT-3.1.2-4 to 3.1.2-6, 4.1, 4.4]."""

from __future__ import annotations

import pytest

from tests.mqtt.conftest import Open
from tests.mqtt.packets import DISCONNECT, V3, V5, Peer, ack, connect, publish

VERSIONS = pytest.mark.parametrize("version", [V3, V5])


def keeping(version: int) -> bytes:
    return b"\x11\0\0\0\x64" if version == V5 else b""


def come(opened: Open, name: str, version: int, *, clean: bool = False) -> tuple[Peer, bool]:
    peer = opened(None, version)
    connack = peer.join(connect(name, version, clean=clean, properties=keeping(version)))
    return peer, bool(connack[2] & 1)


def leave(peer: Peer) -> None:
    peer.send(DISCONNECT)
    peer.ended()


@VERSIONS
def test_mqtt_3_2_2_2_a_session_is_present_where_one_was_kept(opened: Open, version: int) -> None:
    name = f"present-{version}"
    first, present = come(opened, name, version)
    assert not present
    leave(first)
    again, present = come(opened, name, version)
    assert present
    leave(again)
    clean, present = come(opened, name, version, clean=True)
    assert not present
    leave(clean)


@VERSIONS
@pytest.mark.parametrize("selector", ["away/{}/a", "away/{}/all/#"])
def test_mqtt_4_1_0_1_what_came_meanwhile_is_sent_in_order(opened: Open, version: int, selector: str) -> None:
    place = f"{version}-{len(selector)}"
    peer, _ = come(opened, f"away-{place}", version)
    peer.granted((selector.format(place), 2))
    leave(peer)
    sender = opened("", version)
    for n in range(40):
        sender.send(
            publish(
                f"away/{place}/a" if selector.endswith("a") else f"away/{place}/all/x",
                bytes([n]),
                1 + n % 2,
                n + 1,
                version,
            )
        )
        assert sender.receive()[0] >> 4 == 4 + n % 2
        if n % 2:
            sender.send(ack(6, n + 1))
            sender.expect(ack(7, n + 1))
    peer, present = come(opened, f"away-{place}", version)
    assert present
    for n in range(40):
        while (raw := peer.receive())[0] >> 4 == 6:
            peer.send(ack(7, int.from_bytes(raw[2:4])))
        peer.held = raw + peer.held
        got = peer.message()
        assert (got.payload, got.qos, got.dup) == (bytes([n]), 1 + n % 2, False)
        peer.send(ack(4 + n % 2, got.packet_id))


@VERSIONS
def test_mqtt_4_4_0_1_what_was_not_settled_is_sent_again_with_its_identifier(opened: Open, version: int) -> None:
    name = f"again-{version}"
    peer, _ = come(opened, name, version)
    peer.granted((f"redo/{version}", 2))
    sender = opened("", version)
    sender.send(publish(f"redo/{version}", b"1", 1, 1, version), publish(f"redo/{version}", b"2", 2, 2, version))
    sender.send(publish(f"redo/{version}", b"3", 2, 3, version))
    one, two, three = peer.message(), peer.message(), peer.message()
    peer.send(ack(5, two.packet_id))
    peer.expect(ack(6, two.packet_id))
    peer.socket.close()
    peer, present = come(opened, name, version)
    assert present
    again = peer.message()
    assert (again.payload, again.packet_id, again.dup, again.qos) == (b"1", one.packet_id, True, 1)  # [MQTT-3.3.1-1]
    peer.expect(ack(6, two.packet_id))
    again = peer.message()
    assert (again.payload, again.packet_id, again.dup, again.qos) == (b"3", three.packet_id, True, 2)
    peer.send(ack(4, one.packet_id), ack(7, two.packet_id), ack(5, three.packet_id))
    peer.expect(ack(6, three.packet_id))
    peer.send(ack(7, three.packet_id))
    peer.up_to_date(f"redo/{version}")


@VERSIONS
def test_qos_2_from_a_client_is_accepted_once_across_connections(opened: Open, version: int) -> None:
    watcher = opened("", version)
    watcher.granted((f"cross/{version}", 0))
    peer, _ = come(opened, f"cross-{version}", version)
    peer.send(publish(f"cross/{version}", b"m", 2, 7, version))
    peer.expect(ack(5, 7))
    peer.socket.close()
    peer, _ = come(opened, f"cross-{version}", version)
    peer.send(publish(f"cross/{version}", b"m", 2, 7, version, dup=True), ack(6, 7))
    peer.expect(ack(5, 7))
    peer.expect(ack(7, 7))
    assert watcher.message().payload == b"m"
    watcher.up_to_date(f"cross/{version}")


@VERSIONS
def test_an_identifier_that_comes_again_without_dup_on_another_connection_is_another_message(
    opened: Open, version: int
) -> None:
    watcher = opened("", version)
    watcher.granted((f"other/{version}", 0))
    peer, _ = come(opened, f"other-{version}", version)
    peer.send(publish(f"other/{version}", b"1", 2, 7, version))
    peer.expect(ack(5, 7))
    peer.socket.close()
    peer, present = come(opened, f"other-{version}", version)
    assert present
    peer.send(publish(f"other/{version}", b"2", 2, 7, version))
    peer.expect(ack(5, 7))
    assert [watcher.message().payload for _ in range(2)] == [b"1", b"2"]


def test_mqtt_3_1_2_23_a_session_ends_after_its_expiry(opened: Open) -> None:
    peer = opened(None)
    peer.join(connect("short", properties=b"\x11\0\0\0\0"))
    peer.granted(("short", 1))
    leave(peer)
    _, present = come(opened, "short", V5)
    assert not present


def test_a_disconnect_may_shorten_the_session(opened: Open) -> None:
    peer, _ = come(opened, "shortened", V5)
    peer.send(b"\xe0\7\0\5\x11\0\0\0\0")
    peer.ended()
    _, present = come(opened, "shortened", V5)
    assert not present


@VERSIONS
def test_a_takeover_keeps_the_session(opened: Open, version: int) -> None:
    name = f"takeover-{version}"
    first, _ = come(opened, name, version)
    first.granted((f"to/{version}", 1))
    second, present = come(opened, name, version)
    first.ended(0x8E)
    assert present
    opened("", version).send(publish(f"to/{version}", b"m", 1, 1, version))
    assert second.message().payload == b"m"


def test_a_session_is_sent_more_than_its_log_keeps(opened: Open) -> None:
    peer, _ = come(opened, "overrun", V5)
    peer.granted(("overrun", 1))
    leave(peer)
    sender = opened()
    for _ in range(12):
        sender.send(*(publish("overrun", b"m", 1, n + 1) for n in range(20)))
        for n in range(20):
            sender.expect(ack(4, n + 1))
        sender.send(*(publish("overrun", b"m") for _ in range(80)))
    sender.quiet()
    peer, present = come(opened, "overrun", V5)
    assert present
    count = 0
    while count < 1_200:  # a log keeps 1,000
        count += len(peer.drain())
    peer.up_to_date("overrun")
    assert count == 1_200


def hear_retained(peer: Peer, held: set[int], got: list[str], exchanges: int) -> None:
    """Follows QoS 2 until so many exchanges are complete; keeps the identifiers that it received and that were not released."""
    while exchanges:
        raw = peer.receive()
        if raw[0] >> 4 == 6:
            packet_id = int.from_bytes(raw[2:4])
            held.discard(packet_id)
            peer.send(ack(7, packet_id))
            exchanges -= 1
            continue
        peer.held = raw + peer.held
        message = peer.message()
        if message.packet_id not in held:
            held.add(message.packet_id)
            got.append(message.topic)
        peer.send(ack(5, message.packet_id))


@VERSIONS
@pytest.mark.parametrize("says_goodbye", [True, False])
def test_a_walk_of_retained_messages_at_qos_2_goes_on_where_the_session_left_it(
    opened: Open, version: int, says_goodbye: bool
) -> None:
    root, name = f"walk/{version}-{says_goodbye}", f"walker-{version}-{says_goodbye}"
    topics = [f"{root}/{n:03}" for n in range(150)]
    sender = opened("", version)
    for topic in topics:
        sender.send(publish(topic, b"state", 2, 1, version, retain=True), ack(6, 1))
        assert [sender.receive()[0] >> 4, sender.receive()[0] >> 4] == [5, 7]
    held: set[int] = set()
    got: list[str] = []
    takes_two = b"\x21\0\2" if version == V5 else b""
    peer = opened(None, version)
    peer.join(connect(name, version, clean=False, properties=keeping(version) + takes_two))
    assert peer.granted((f"{root}/#", 2)) == b"\2"
    sender.send(publish(f"{root}/live", b"live", 2, 1, version), ack(6, 1))
    assert [sender.receive()[0] >> 4, sender.receive()[0] >> 4] == [5, 7]
    for _ in range(9):
        hear_retained(peer, held, got, exchanges=10)
        if says_goodbye:
            peer.send(DISCONNECT)
        peer.socket.close()
        peer = opened(None, version)
        connack = peer.join(connect(name, version, clean=False, properties=keeping(version) + takes_two))
        assert connack[2] == 1
    hear_retained(peer, held, got, exchanges=1)
    while len(got) < 151 or held:
        hear_retained(peer, held, got, exchanges=1)
    assert got == [*topics, f"{root}/live"]


def test_mqtt_3_3_2_12_a_repeat_sets_its_alias_too(opened: Open) -> None:
    """Topic aliases are those of a connection, and a QoS 2 publish that is sent again may set one."""
    reader = opened()
    reader.granted(("repeat/#", 0))
    first, _ = come(opened, "repeats", V5)
    first.send(publish("repeat/b", b"first", 2, 7))
    assert first.receive()[0] == 0x50
    first.socket.close()
    again, present = come(opened, "repeats", V5)
    assert present
    alias = b"\x23\x00\x01"
    again.send(publish("repeat/c", b"other", properties=alias))
    again.send(
        publish("repeat/b", b"first", 2, 7, dup=True, properties=alias), publish("", b"second", properties=alias)
    )
    assert again.receive()[0] == 0x50
    assert [reader.message().topic for _ in range(3)] == ["repeat/b", "repeat/c", "repeat/b"]
    again.send(ack(6, 7))
    assert again.receive()[0] == 0x70
    leave(again)
