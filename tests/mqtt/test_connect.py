"""CONNECT, CONNACK, keep alive, wills and what ends a connection [MQTT-3.1, 3.2, 3.14]."""

from __future__ import annotations

import time

import pytest

from tests.mqtt.conftest import Open
from tests.mqtt.packets import DISCONNECT, PINGREQ, V3, V5, connect, packet, publish, text

HEAD3, HEAD5 = text("MQTT") + b"\4", text("MQTT") + b"\5"

REFUSED3 = {
    "MQTT-3.1.2-2 level 3": (packet(0x10, text("MQTT") + b"\3\2\0\0" + text("a")), b"\x20\2\0\1"),
    "level 6 of the old name": (packet(0x10, text("MQIsdp") + b"\3\2\0\0" + text("a")), b"\x20\2\0\1"),
    "MQTT-3.1.3-8 no name and not clean": (connect("", V3, clean=False), b"\x20\2\0\2"),
    "MQTT-3.1.2-3 reserved flag": (packet(0x10, HEAD3 + b"\3\0\0" + text("a")), b""),
    "MQTT-3.1.2-13 will QoS without a will": (packet(0x10, HEAD3 + b"\x0a\0\0" + text("a")), b""),
    "MQTT-3.1.2-15 will retain without a will": (packet(0x10, HEAD3 + b"\x22\0\0" + text("a")), b""),
    "MQTT-3.1.2-14 will QoS 3": (packet(0x10, HEAD3 + b"\x1e\0\0" + text("a") * 3), b""),
    "MQTT-3.1.2-22 password without a user name": (packet(0x10, HEAD3 + b"\x42\0\0" + text("a") * 2), b""),
    "MQTT-3.1.2-19 a user name that is missing": (packet(0x10, HEAD3 + b"\x82\0\0" + text("a")), b""),
    "MQTT-3.1.2-20 bytes behind the end": (packet(0x10, HEAD3 + b"\2\0\0" + text("a") + b"x"), b""),
    "MQTT-3.1.0-1 the first packet is no CONNECT": (publish("a", version=V3), b""),
    "a first packet of 256 MB": (b"\x10\xff\xff\xff\x7f", b""),
}
REFUSED5 = {
    "MQTT-3.1.2-2 level 6": (packet(0x10, text("MQTT") + b"\6\2\0\0\0" + text("a")), 0x84),
    "MQTT-3.1.2-1 another name": (packet(0x10, text("MQTU") + b"\5\2\0\0\0" + text("a")), 0x84),
    "MQTT-3.1.2-3 reserved flag": (packet(0x10, HEAD5 + b"\3\0\0\0" + text("a")), 0x81),
    "MQTT-3.1.2-12 will QoS 3": (packet(0x10, HEAD5 + b"\x1e\0\0\0" + text("a") + b"\0" + text("a") * 2), 0x81),
    "receive maximum 0": (connect("a", properties=b"\x21\0\0"), 0x82),
    "maximum packet size 0": (connect("a", properties=b"\x27\0\0\0\0"), 0x82),
    "session expiry twice": (connect("a", properties=b"\x11\0\0\0\1" * 2), 0x82),
    "request problem information 2": (connect("a", properties=b"\x17\2"), 0x82),
    "request response information 2": (connect("a", properties=b"\x19\2"), 0x82),
    "authentication data without a method": (connect("a", properties=b"\x16" + text("x")), 0x82),
    "MQTT-4.12.0-1 a method that is not known": (connect("a", properties=b"\x15" + text("x")), 0x8C),
    "a property of another packet": (connect("a", properties=b"\x23\0\1"), 0x81),
    "a wildcard in the will's topic": (connect("a", will=("a/#", b"")), 0x90),
    "a will on the server's own": (connect("a", will=("$SYS/a", b"")), 0x87),
    "a bad property of the will": (connect("a", will=("a", b""), will_properties=b"\1\2"), 0x82),
    "MQTT-3.1.3-4 U+0000 in the name": (connect("a\0"), 0x81),
    "a name with a wildcard": (connect("a+"), 0x85),
    "a name with a percent sign": (connect("a%b"), 0x85),
    "a name with a control character": (connect("a\1"), 0x85),
    "a name of 64 kB": (connect("a" * 65_535), 0x85),
    "a password that is no text": (connect("a", username="u", password=b"\xff"), 0x86),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED3)
def test_3_1_1_refuses(opened: Open, name: str) -> None:
    raw, answer = REFUSED3[name]
    peer = opened(None, V3)
    peer.send(raw)
    if answer:
        peer.expect(answer)
    peer.ended()


@pytest.mark.parametrize("name", REFUSED5)
def test_5_0_refuses_with_a_reason(opened: Open, name: str) -> None:
    raw, reason = REFUSED5[name]
    peer = opened(None)
    peer.send(raw)
    connack = peer.receive()
    assert connack[0] == 0x20 and connack[2:4] == bytes([0, reason]), connack.hex(" ")
    peer.ended()


def test_mqtt_3_1_0_2_a_second_connect_ends_the_connection(opened: Open) -> None:
    for version in (V3, V5):
        peer = opened("", version)
        peer.send(connect("", version))
        peer.ended(0x82)


def test_mqtt_3_2_2_16_a_client_without_a_name_is_told_its_own(opened: Open) -> None:
    names = {opened(None).join(connect(""))[4:] for _ in range(2)}
    assert len(names) == 2 and all(b"\x12" in name for name in names)


def test_mqtt_3_1_2_24_silence_of_one_and_a_half_keep_alives_ends_it(opened: Open) -> None:
    watcher = opened("")
    watcher.granted(("keep/will", 0))
    for version in (V3, V5):
        before = time.monotonic()
        opened("", version, keep_alive=1, will=("keep/will", b"lost")).ended(0x8D)
        assert time.monotonic() - before > 1
        assert watcher.message().payload == b"lost"


def test_mqtt_3_2_2_21_an_endless_keep_alive_is_given_an_end(opened: Open) -> None:
    assert b"\x13\x0e\x10" in opened(None).join(connect("", keep_alive=0))


def test_mqtt_3_1_4_3_another_connection_takes_the_client_over(opened: Open) -> None:
    for version in (V3, V5):
        first = opened("taken", version)
        opened("taken", version)
        first.ended(0x8E)


def test_mqtt_3_14_4_3_a_disconnect_forgets_the_will_and_the_end_of_the_socket_does_not(opened: Open) -> None:
    watcher = opened("")
    watcher.granted(("parting/#", 1))
    left = opened("", will=("parting/a", b"never"))
    left.send(DISCONNECT)
    left.ended()
    asked = opened("", will=("parting/b", b"asked"), will_flags=0x08)
    asked.send(packet(0xE0, b"\4"))
    got = watcher.message()
    assert (got.topic, got.payload, got.qos) == ("parting/b", b"asked", 1)
    opened("", V3, will=("parting/c", b"lost")).socket.close()
    assert watcher.message().payload == b"lost"


def test_mqtt_3_1_3_9_a_will_waits_for_its_delay_and_not_if_the_client_returns(opened: Open) -> None:
    watcher = opened("")
    watcher.granted(("delay/#", 0))
    delayed = {"will": ("delay/a", b"late"), "will_properties": b"\x18\0\0\0\1", "properties": b"\x11\0\0\0\x0a"}
    peer = opened("delayed", **delayed)
    before = time.monotonic()
    peer.socket.close()
    assert watcher.message().payload == b"late"
    assert time.monotonic() - before > 0.9
    longer = {**delayed, "will_properties": b"\x18\0\0\0\2"}
    opened("delayed", **longer).socket.close()
    opened("delayed", clean=False, properties=b"\x11\0\0\0\x0a")
    opened("gone", **{**longer, "will": ("delay/a", b"later")}).socket.close()
    assert watcher.message().payload == b"later", "the one that returned had to be published first, if at all"


def test_mqtt_3_12_4_1_a_ping_is_answered(opened: Open) -> None:
    peer = opened("", V5)
    peer.send(PINGREQ, PINGREQ)
    peer.expect(b"\xd0\0")
    peer.expect(b"\xd0\0")
