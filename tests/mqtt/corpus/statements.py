"""Packets that break a normative statement, one of each, by its number: the reason of the standard in 5.0, the close in 3.1.1."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mqtt.corpus.case import ALIAS, MALFORMED, PROTOCOL, TOPIC, Case, both
from tests.mqtt.packets import V3, V5, packet, publish, text, varint


def sub5(filters: bytes, properties: bytes = b"", first: int = 0x82) -> bytes:
    return packet(first, b"\0\1" + varint(len(properties)) + properties + filters)


def pub5(properties: bytes, topic: str = "t") -> bytes:
    return publish(topic, b"x", properties=properties)


BOTH = {
    "MQTT-2.1.3-1 flags of PINGREQ": (b"\xc1\0", MALFORMED),
    "MQTT-2.1.3-1 flags of PUBREL": (b"\x60\2\0\1", MALFORMED),
    "MQTT-2.1.3-1 flags of PUBACK": (b"\x42\2\0\1", MALFORMED),
    "remaining length of five bytes": (b"\x30\xff\xff\xff\xff\1", MALFORMED),
    "packet type 0": (b"\0\0", MALFORMED),
    "a CONNACK from a client": (b"\x20\2\0\0", PROTOCOL),
    "a SUBACK from a client": (b"\x90\3\0\1\0", PROTOCOL),
    "a PINGRESP from a client": (b"\xd0\0", PROTOCOL),
    "a PINGREQ with a body": (b"\xc0\1\0", MALFORMED),
    "MQTT-3.3.1-2 DUP at QoS 0": (b"\x38\3\0\1a", MALFORMED),
    "MQTT-3.3.1-4 QoS 3": (b"\x36\5\0\1a\0\1", MALFORMED),
    "MQTT-2.2.1-3 packet identifier 0 of PUBLISH": (b"\x32\5\0\1a\0\0", PROTOCOL),
    "MQTT-2.2.1-3 packet identifier 0 of PUBACK": (b"\x40\2\0\0", PROTOCOL),
    "a PUBLISH cut in its topic": (b"\x30\2\0\5", MALFORMED),
    "a PUBLISH cut before its identifier": (b"\x32\3\0\1a", MALFORMED),
    "a PUBACK of one byte": (b"\x40\1\0", MALFORMED),
}
V3_ONLY = {
    "MQTT-3.8.1-1 flags of SUBSCRIBE": b"\x80\6\0\1\0\1a\0",
    "MQTT-3.8.3-3 SUBSCRIBE without a filter": b"\x82\2\0\1",
    "MQTT-3.8.3-4 reserved bits": b"\x82\6\0\1\0\1a\x04",
    "MQTT-3.8.3-4 QoS 3": b"\x82\6\0\1\0\1a\3",
    "MQTT-3.8.3-3 filter without options": b"\x82\5\0\1\0\1a",
    "MQTT-3.10.1-1 flags of UNSUBSCRIBE": b"\xa0\5\0\1\0\1a",
    "MQTT-3.10.3-2 UNSUBSCRIBE without a filter": b"\xa2\2\0\1",
    "MQTT-4.7.1-2 # not last": b"\x82\x0a\0\1\0\5a/#/b\0",
    "MQTT-4.7.1-3 + not a level": b"\x82\7\0\1\0\2a+\0",
    "MQTT-4.7.3-1 empty filter": b"\x82\5\0\1\0\0\0",
    "MQTT-4.7.3-2 U+0000 in a filter": b"\x82\6\0\1\0\1\0\0",
    "MQTT-3.3.2-2 wildcard in a topic": publish("a/+", version=V3),
    "MQTT-4.7.3-1 empty topic": publish("", version=V3),
    "MQTT-1.5.3-1 surrogate": b"\x30\5\0\3\xed\xa0\x80",
    "MQTT-1.5.3-2 U+0000": b"\x30\3\0\1\0",
    "packet type 15": b"\xf0\0",
    "MQTT-3.14.1-1 DISCONNECT with flags": b"\xe1\0",
    "a DISCONNECT with a body": b"\xe0\1\0",
    "a PUBACK that is too long": b"\x40\3\0\1\0",
}
V5_ONLY = {
    "MQTT-1.5.5-1 length not the shortest": (b"\xc0\x80\0", MALFORMED),
    "MQTT-3.3.2-2 wildcard in a topic": (publish("a/#"), TOPIC),
    "MQTT-1.5.4-1 surrogate": (b"\x30\6\0\3\xed\xa0\x80\0", MALFORMED),
    "MQTT-1.5.4-2 U+0000": (b"\x30\4\0\1\0\0", MALFORMED),
    "a control character in a topic": (b"\x30\4\0\1\1\0", MALFORMED),
    "no topic and no alias": (publish(""), PROTOCOL),
    "MQTT-3.3.2-8 alias 0": (pub5(b"\x23\0\0"), ALIAS),
    "MQTT-3.3.2-9 alias above the maximum": (pub5(b"\x23\xff\xff"), ALIAS),
    "an alias that means nothing": (pub5(b"\x23\0\1", ""), PROTOCOL),
    "MQTT-3.3.4-6 subscription identifier from a client": (pub5(b"\x0b\1"), PROTOCOL),
    "MQTT-3.3.2-14 wildcard in the response topic": (pub5(b"\x08" + text("a/#")), PROTOCOL),
    "payload format 2": (pub5(b"\1\2"), PROTOCOL),
    "payload format twice": (pub5(b"\1\0\1\0"), PROTOCOL),
    "message expiry twice": (pub5(b"\2\0\0\0\1\2\0\0\0\1"), PROTOCOL),
    "topic alias twice": (pub5(b"\x23\0\1\x23\0\1"), PROTOCOL),
    "content type twice": (pub5((b"\3" + text("a")) * 2), PROTOCOL),
    "response topic twice": (pub5((b"\x08" + text("a")) * 2), PROTOCOL),
    "correlation data twice": (pub5((b"\x09" + text("a")) * 2), PROTOCOL),
    "property of another packet": (pub5(b"\x21\0\1"), MALFORMED),
    "a property cut short": (pub5(b"\2\0"), MALFORMED),
    "property length past the end": (packet(0x30, text("t") + b"\x7f"), MALFORMED),
    "half a user property": (pub5(b"\x26" + text("k")), MALFORMED),
    "text that is not UTF-8": (publish("t", b"\xff", properties=b"\1\1"), 0x99),
    "MQTT-3.8.3-2 no filter": (sub5(b""), PROTOCOL),
    "MQTT-3.8.1-1 flags of SUBSCRIBE": (sub5(text("a") + b"\0", first=0x80), MALFORMED),
    "QoS 3 in a subscription": (sub5(text("a") + b"\3"), PROTOCOL),
    "retain handling 3": (sub5(text("a") + b"\x30"), PROTOCOL),
    "MQTT-3.8.3-5 reserved bits": (sub5(text("a") + b"\x40"), MALFORMED),
    "MQTT-3.8.3-4 no local on a shared one": (sub5(text("$share/g/a") + b"\4"), PROTOCOL),
    "MQTT-4.8.2-1 shared without a filter": (sub5(text("$share/g") + b"\0"), PROTOCOL),
    "MQTT-4.8.2-2 wildcard in the group's name": (sub5(text("$share/g+/a") + b"\0"), MALFORMED),
    "subscription identifier 0": (sub5(text("a") + b"\0", b"\x0b\0"), PROTOCOL),
    "subscription identifier twice": (sub5(text("a") + b"\0", b"\x0b\1\x0b\2"), PROTOCOL),
    "MQTT-4.7.1-1 # not last": (sub5(text("a/#/b") + b"\0"), MALFORMED),
    "MQTT-4.7.1-2 + not a level": (sub5(text("a+") + b"\0"), MALFORMED),
    "MQTT-4.7.3-1 empty filter": (sub5(text("") + b"\0"), MALFORMED),
    "MQTT-3.10.3-2 no filter": (packet(0xA2, b"\0\1\0"), PROTOCOL),
    "an unknown reason of PUBACK": (packet(0x40, b"\0\1\xff\0"), PROTOCOL),
    "reason string twice": (packet(0x40, b"\0\1\0\x08" + (b"\x1f" + text("a")) * 2), PROTOCOL),
    "an unknown reason of DISCONNECT": (packet(0xE0, b"\x01"), PROTOCOL),
    "MQTT-3.14.2-2 an expiry for a session that had none": (packet(0xE0, b"\0\5\x11\0\0\0\1"), PROTOCOL),
    "a server reference from a client": (packet(0xE0, b"\0\4\x1c" + text("a")), PROTOCOL),
    "MQTT-4.12.0-6 AUTH without a method": (packet(0xF0), PROTOCOL),
    "MQTT-3.2.2-15 larger than the maximum packet size": (b"\x30\xff\xff\xff\x7f", 0x95),
} | {
    f"property {number:#x} that does not exist": (pub5(bytes([number, 0])), MALFORMED)
    for number in (0x00, 0x04, 0x05, 0x0A, 0x0C, 0x0E, 0x10, 0x14, 0x1B, 0x1D, 0x20, 0x2B, 0x7F)
}  # fmt: skip


def list_cases() -> Iterator[Case]:
    for name, (raw, reason) in BOTH.items():
        yield from both(name, raw, reason)
    for name, raw in V3_ONLY.items():
        yield Case(name, V3, raw, MALFORMED)
    for name, (raw, reason) in V5_ONLY.items():
        yield Case(name, V5, raw, reason)
