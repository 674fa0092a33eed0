"""PUBLISH (3.3): its flags, its topic, its identifier, its properties, aliases and payloads."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mqtt.corpus import properties
from tests.mqtt.corpus.case import ALIAS, MALFORMED, PAYLOAD, PROTOCOL, RIGHTS, TOPIC, Case, cut_short, topic_faults
from tests.mqtt.packets import V3, V5, ack, packet, props, publish, text

ALIASES = 64
"""`mqtt_aliases_max` as it is by default: the aliases that CONNACK offers."""


def raw_publish(topic: bytes, version: int, qos: int = 0, packet_id: int = 9, *, properties: bytes = b"\0") -> bytes:
    identifier = packet_id.to_bytes(2) if qos else b""
    return packet(0x30 | qos << 1, text(topic) + identifier + (properties if version == V5 else b"") + b"m")


def list_cases() -> Iterator[Case]:
    for version in (V3, V5):
        yield from _list_flags(version)
        for qos in range(3):
            yield from _list_topics(version, qos)
        yield from _list_good(version)
    yield from _list_properties()
    yield from _list_aliases()
    yield from _list_payloads()


def _list_flags(version: int) -> Iterator[Case]:
    for retain in (0, 1):
        for dup in (0, 8):
            body = text("t") + b"\0\1" + props(version) + b"m"
            yield Case(f"QoS 3, {dup | retain:x} [MQTT-3.3.1-4]", version, packet(0x36 | dup | retain, body), MALFORMED)
        again = packet(0x38 | retain, text("t") + props(version) + b"m")
        yield Case(f"DUP at QoS 0, retain {retain} [MQTT-3.3.1-2]", version, again, MALFORMED)
    for qos in (1, 2):
        for dup in (False, True):
            raw = publish("t", b"m", qos, 0, version, dup=dup)
            yield Case(f"identifier 0 at QoS {qos}, DUP {dup} [MQTT-2.2.1-3]", version, raw, PROTOCOL)


def _list_topics(version: int, qos: int) -> Iterator[Case]:
    for name, (raw, reason) in topic_faults(PROTOCOL if version == V5 else MALFORMED).items():
        yield Case(f"a topic at QoS {qos}: {name}", version, raw_publish(raw, version, qos), reason)
    first, body = 0x30 | qos << 1, text("topic") + (b"\0\1" if qos else b"") + props(version)
    yield from cut_short(f"PUBLISH of QoS {qos}", first, body, version, range(len(body)))
    whole = raw_publish(b"t", version, qos)
    yield Case(f"a topic longer than its packet, QoS {qos}", version, whole[:2] + b"\xff\xff" + whole[4:], MALFORMED)
    for name, topic in {"* as a level": b"a/*/b", "** as a level": b"**", "1,025 bytes": b"t" * 1025}.items():
        raw = raw_publish(topic, version, qos)
        if qos == 0 or version == V3:  # 3.1.1 has no word for it
            yield Case(f"a topic that is no subject, QoS {qos}: {name}", version, raw, TOPIC)
        else:
            answer = packet(0x40 if qos == 1 else 0x50, b"\0\x09" + bytes([TOPIC]))
            yield Case(f"a topic that is no subject, QoS {qos}: {name}", version, raw, answer=answer)
    for topic in (b"$SYS/a", b"$share/g/a", b"$", b"$a/b"):
        said = b"" if version == V3 else bytes([RIGHTS])
        answer = packet(0x40 if qos == 1 else 0x50, b"\0\x09" + said) if qos else b""
        yield Case(f"{topic!r} at QoS {qos}", version, raw_publish(topic, version, qos), answer=answer)


def _list_good(version: int) -> Iterator[Case]:
    for topic in ("t", "/", "//", "/a", "a/", "a//b", " ", "a b/c", "é/水/𐀀", "﻿a", "a" * 1023, "a$b", "a/$b", "￿", "."):
        yield Case(f"the topic {topic[:9]!r}", version, publish(topic, b"m", 1, 9, version), answer=ack(4, 9))
    for packet_id in (1, 0x00FF, 0x0100, 0x7FFF, 0x8000, 0xFFFF):
        raw = publish("t", b"m", 2, packet_id, version)
        yield Case(
            f"identifier {packet_id} at QoS 2",
            version,
            raw + ack(6, packet_id),
            answer=ack(5, packet_id) + ack(7, packet_id),
        )
    for retain in (False, True):
        for dup in (False, True):
            raw = publish("flags", b"m", 1, 9, version, retain=retain, dup=dup)
            yield Case(f"retain {retain}, DUP {dup}", version, raw, answer=ack(4, 9))
    yield Case("nothing as payload", version, publish("t", b"", 1, 9, version), answer=ack(4, 9))
    twice = publish("t", b"m", 2, 9, version)
    again = publish("t", b"m", 2, 9, version, dup=True)
    yield Case("twice and released", version, twice + again + ack(6, 9), answer=ack(5, 9) + ack(5, 9) + ack(7, 9))


def _list_properties() -> Iterator[Case]:
    for qos in range(3):

        def around(raw: bytes, qos: int = qos) -> bytes:
            return raw_publish(b"t", V5, qos, properties=raw)

        for case in properties.list_cases("PUBLISH", around):
            yield Case(f"{case.name}, QoS {qos}", V5, case.sent, case.reason)
    good = {0x02: 0, 0x03: 1, 0x09: 1}
    for number, value in good.items():
        raw = properties.write(number, value)
        sent = publish("t", b"m", 1, 9, properties=raw)
        yield Case(f"PUBLISH: property {number:#04x} of {value}", V5, sent, answer=ack(4, 9))
    for raw in (b"\3\0\0", b"\x09\0\0", b"\x26\0\0\0\0", properties.write(0x26) * 20):
        yield Case(f"PUBLISH: {raw[:5].hex()} is well", V5, publish("t", b"m", 1, 9, properties=raw), answer=ack(4, 9))
    for name, bad in {"a +": b"a/+", "a #": b"#", "nothing": b"", "a control": b"\1"}.items():
        sent = publish("t", b"m", properties=b"\x08" + text(bad))
        yield Case(f"a response topic: {name} [MQTT-3.3.2-14]", V5, sent, PROTOCOL)


def _list_aliases() -> Iterator[Case]:
    def alias(number: int) -> bytes:
        return b"\x23" + number.to_bytes(2)

    for qos in range(3):
        for number in (0, ALIASES + 1, 0x8000, 0xFFFF):
            for topic in ("t", ""):
                sent = publish(topic, b"m", qos, 9, properties=alias(number))
                yield Case(f"alias {number} for {topic!r}, QoS {qos} [MQTT-3.3.2-8, -9]", V5, sent, ALIAS)
        for number in (1, ALIASES):
            sent = publish("", b"m", qos, 9, properties=alias(number))
            yield Case(f"alias {number} means nothing yet, QoS {qos}", V5, sent, PROTOCOL)
    for number in (1, ALIASES):
        first = publish("t", b"m", 1, 9, properties=alias(number))
        second = publish("", b"m", 1, 10, properties=alias(number))
        yield Case(f"alias {number}", V5, first + second, answer=ack(4, 9) + ack(4, 10))


def _list_payloads() -> Iterator[Case]:
    for qos in range(3):
        for name, bad in {"ff": b"\xff", "a surrogate": b"\xed\xa0\x80", "cut": b"a\xc3"}.items():
            sent = publish("t", bad, qos, 9, properties=b"\1\1")
            if qos == 0:
                yield Case(f"a text of {name}", V5, sent, PAYLOAD)
            else:
                answer = packet(0x40 if qos == 1 else 0x50, b"\0\x09" + bytes([PAYLOAD]))
                yield Case(f"a text of {name}, QoS {qos}", V5, sent, answer=answer)
    for size in (126, 127, 128, 16_382, 16_384, 70_000):
        yield Case(f"a payload of {size}", V5, publish("t", b"x" * size, 1, 9), answer=ack(4, 9))
