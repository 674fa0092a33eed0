"""A message that cannot be kept is not acknowledged, and every refusal is a log line that names the client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mqtt.conftest import Served, serve
from tests.mqtt.packets import V3, V5, Peer, ack, connect, packet, publish

DEADLINE_S = 10.0


@pytest.fixture(scope="module")
def node() -> Iterator[Served]:
    with serve() as served:
        yield served


def await_line(log: Path, *words: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        if any(all(word in line for word in words) for line in log.read_text().splitlines()):
            return
        time.sleep(0.02)  # the log is a file: nothing notifies of a new line
    raise AssertionError(f"no line with {words}:\n{log.read_text()}")


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("topic", ["a/*/b", "a/**", "**"])
def test_a_topic_that_cannot_be_kept_ends_a_connection_of_3_1_1_unacknowledged(
    node: Served, topic: str, qos: int
) -> None:
    name = f"three-{topic.replace('*', 'x')}-{qos}"
    with Peer(node.mqtt, V3) as peer:
        peer.join(connect(name, V3, clean=False))
        peer.send(publish(topic, b"m", qos, 7, V3))
        peer.ended()
    with Peer(node.mqtt, V3) as peer:  # what comes again is not taken for known
        peer.join(connect(name, V3, clean=False))
        peer.send(publish(topic, b"m", qos, 7, V3, dup=True))
        peer.ended()
    with Peer(node.mqtt, V5) as peer:
        peer.join(connect(f"five-{name}"))
        peer.send(publish(topic, b"m", qos, 7))
        peer.expect(packet(0x40 if qos == 1 else 0x50, b"\0\7\x90"))


def test_so_does_a_subject_for_which_there_is_no_room() -> None:
    with serve("limits.subjects_max=40") as node, Peer(node.mqtt, V3) as peer:
        peer.join(connect("many", V3))
        for number in range(1, 60):
            peer.send(publish(f"many/{number}", b"m", 1, number, V3))
            if (raw := peer.receive()) == b"":
                break
            assert raw == ack(4, number)
        else:
            raise AssertionError("all were acknowledged")


def test_an_operator_may_have_it_dropped() -> None:
    with serve("mqtt.refused=drop") as node, Peer(node.mqtt, V3) as peer:
        peer.join(connect("three", V3))
        peer.send(publish("a/*/b", b"m", 1, 7, V3))
        peer.expect(ack(4, 7))


def test_a_bridge_of_mosquitto_connects(node: Served) -> None:
    state = "$SYS/broker/connection/edge/state"
    hello = bytearray(connect("edge", V3, will=(state, b"0"), will_flags=0x28))
    level = hello.index(b"MQTT") + 4
    with Peer(node.mqtt, V3) as peer:
        hello[level] = 0x84  # 3.1.1, and the bit of a bridge
        peer.send(bytes(hello))
        peer.expect(b"\x20\2\0\1")
    with Peer(node.mqtt, V3) as peer:
        hello[level] = 4
        peer.join(bytes(hello))
        for number in (1, 2):
            peer.send(publish(state, b"1", 1, number, V3))
            peer.expect(ack(4, number))
        peer.send(publish("many/1", b"m", 1, 3, V3))
        peer.expect(ack(4, 3))


@pytest.mark.parametrize("version", [V3, V5])
def test_a_client_identifier_may_hold_slashes(node: Served, version: int) -> None:
    with Peer(node.mqtt, version) as peer:
        peer.join(connect("site/7/pump", version))


@pytest.mark.parametrize("version", [V3, V5])
def test_a_message_that_is_too_large_says_so_in_the_log_and_in_the_disconnect(tmp_path: Path, version: int) -> None:
    log = tmp_path / "log"
    with serve("limits.message_bytes_max=4096", log=log) as node, Peer(node.mqtt, version) as peer:
        peer.join(connect("wordy", version))
        peer.send(publish("a", b"x" * 5_000, 1, 7, version))
        said = peer.receive()
        if version == V5:
            assert said[0] == 0xE0 and said[2] == 0x95 and b"limits.message_bytes_max" in said
            said = peer.receive()
        assert said == b""
        await_line(log, "mqtt_refused", "wordy", "MQTT 0x95", "limits.message_bytes_max")


@pytest.mark.parametrize("version", [V3, V5])
def test_what_is_refused_is_a_log_line(tmp_path: Path, version: int) -> None:
    log = tmp_path / "log"
    with serve(log=log) as node:
        refuse_some(node, log, version)


def refuse_some(node: Served, log: Path, version: int) -> None:
    with Peer(node.mqtt, version) as peer:
        peer.send(connect("odd+name", version))
        peer.receive()
    await_line(log, "mqtt_refused", "0x85")
    with Peer(node.mqtt, version) as peer:
        peer.join(connect(f"filters-{version}", version))
        assert peer.granted(("a/**", 1)) == (b"\x80" if version == V3 else b"\x8f")
    await_line(log, "mqtt_refused", f"filters-{version}")
    state = "$SYS/broker/connection/edge/state"
    with Peer(node.mqtt, version) as peer:
        peer.join(connect(f"edge-{version}", version))
        peer.send(publish(state, b"1", 1, 1, version), publish(state, b"1", 1, 2, version))
        peer.expect(ack(4, 1))
        peer.expect(ack(4, 2))
        peer.send(publish("a/*/b", b"m", 1, 3, version))
        peer.receive()
    await_line(log, "mqtt_refused", f"edge-{version}", "bridge")
    assert log.read_text().count("/connection/ is not kept") == 1
