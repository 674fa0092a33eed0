"""Subscriptions of one client that overlap: one copy of each message, for all of them [MQTT-3.3.4-2 to 3.3.4-4]."""

from __future__ import annotations

import pytest

from tests.mqtt.conftest import Open
from tests.mqtt.packets import DISCONNECT, V3, V5, Peer, ack, connect, publish, unsubscribe

VERSIONS = pytest.mark.parametrize("version", [V3, V5])


def identifiers(properties: bytes) -> list[int]:
    """The subscription identifiers below 128 among properties that hold nothing else."""
    assert set(properties[::2]) <= {0x0B}, properties
    return sorted(properties[1::2])


@VERSIONS
@pytest.mark.parametrize("filters", [("o/#", "o/a"), ("o/a", "o/#"), ("o/+", "o/#", "o/a")], ids=str)
def test_one_copy_comes_at_the_highest_qos(opened: Open, version: int, filters: tuple[str, ...]) -> None:
    peer = opened("", version)
    for name, qos in zip(filters, (1, 2, 1), strict=False):
        assert peer.granted((name, qos)) == bytes([qos])
    sender = opened("", version)
    sender.send(*(publish("o/a", bytes([n]), 2, n, version) for n in range(1, 10)))
    for n in range(1, 10):
        got = peer.message()
        assert (got.payload, got.qos) == (bytes([n]), 2)
    peer.quiet()


def test_it_names_all_subscriptions_that_select_it(opened: Open) -> None:
    peer = opened()
    for number, name in enumerate(("i/#", "i/a", "i/+", "other"), 1):
        peer.granted((name, 1), properties=bytes([0x0B, number]))
    opened().send(publish("i/a", b"all", 1, 1), publish("i/a/b", b"one", 1, 2))
    first, second = peer.message(), peer.message()
    assert (first.payload, identifiers(first.properties)) == (b"all", [1, 2, 3])
    assert (second.payload, identifiers(second.properties)) == (b"one", [1])
    peer.quiet()


def test_no_local_leaves_out_its_own_subscription_alone(opened: Open) -> None:
    peer = opened("overlap-local")
    peer.granted(("l/#", 0x04 | 1), properties=b"\x0b\1")
    peer.granted(("l/a", 1), properties=b"\x0b\2")
    peer.send(publish("l/a", b"mine"))
    got = peer.message()
    assert (got.payload, identifiers(got.properties)) == (b"mine", [2])
    opened().send(publish("l/a", b"theirs"))
    assert identifiers(peer.message().properties) == [1, 2]


def test_a_subscription_that_ends_leaves_what_it_was_to_send_to_the_other(opened: Open) -> None:
    peer = opened("", properties=b"\x21\0\1")  # one at a time
    peer.granted(("e/#", 1))
    peer.granted(("e/a", 2))
    sender = opened()
    sender.send(*(publish("e/a", bytes([n]), 1, n) for n in range(1, 8)))
    first = peer.message()
    peer.send(unsubscribe("e/a", packet_id=9), ack(4, first.packet_id))
    got = [first.payload]
    while len(got) < 7:
        raw = peer.receive()
        if raw[0] >> 4 == 3:
            peer.held = raw + peer.held
            message = peer.message()
            peer.send(ack(4, message.packet_id))
            if message.payload != got[-1]:
                got.append(message.payload)
    assert got == [bytes([n]) for n in range(1, 8)]


@VERSIONS
def test_what_came_meanwhile_comes_once_too(opened: Open, version: int) -> None:
    def come() -> Peer:
        peer = opened(None, version)
        keep = b"\x11\0\0\0\x64" if version == V5 else b""
        peer.join(connect(f"overlap-away-{version}", version, clean=False, properties=keep))
        return peer

    first = come()
    first.granted((f"away{version}/#", 1), (f"away{version}/a", 2), (f"away{version}/+", 1))
    first.send(DISCONNECT)
    first.ended()
    sender = opened("", version)
    sender.send(*(publish(f"away{version}/a", bytes([n]), 2, n, version) for n in range(1, 10)))
    for n in range(1, 10):
        sender.expect(ack(5, n))
    again = come()
    for n in range(1, 10):
        got = again.message()
        assert (got.payload, got.qos) == (bytes([n]), 2)
    again.up_to_date(f"away{version}/a")
