"""The fixed header (2.1): types, flags, lengths; and packets before or instead of CONNECT."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mqtt.corpus import properties
from tests.mqtt.corpus.case import LARGE, MALFORMED, PROTOCOL, Case
from tests.mqtt.corpus.properties import write
from tests.mqtt.packets import V3, V5, ack, connect, packet, publish, subscribe, unsubscribe, varint

SERVERS = {"CONNACK": 0x20, "SUBACK": 0x90, "UNSUBACK": 0xB0, "PINGRESP": 0xD0}
"""Packets that a client does not send, whatever they hold."""

WANTED = {1: 0, 4: 0, 5: 0, 6: 2, 7: 0, 8: 2, 10: 2, 12: 0, 14: 0, 15: 0}
"""The flags of each type (2.1.3); PUBLISH has flags of its own. In 3.1.1 type 15 is none, in 5.0 it is AUTH [MQTT-3.15.1-1]."""

FIVE = b"\x80\x80\x80\x80\1", b"\xff\xff\xff\xff\x7f", b"\xff\xff\xff\xff\xff"


def in_order(version: int) -> dict[str, bytes]:
    """One good packet of each type that a client sends."""
    return {
        "PUBLISH": publish("a", b"m", version=version),
        "PUBACK": ack(4, 9),
        "PUBREC": ack(5, 9),
        "PUBREL": ack(6, 9),
        "PUBCOMP": ack(7, 9),
        "SUBSCRIBE": subscribe(("a", 0), version=version),
        "UNSUBSCRIBE": unsubscribe("a", version=version),
        "PINGREQ": packet(0xC0),
        "DISCONNECT": packet(0xE0),
        "AUTH": packet(0xF0),
    }


def list_cases() -> Iterator[Case]:
    for version in (V3, V5):
        yield from _list_types(version)
        yield from _list_flags(version)
        yield from _list_lengths(version)
        yield from _list_first(version)
        yield Case("a second CONNECT [MQTT-3.1.0-2]", version, connect("again", version), PROTOCOL)
        yield Case("a second CONNECT of the other version", version, connect("again", V3 + V5 - version), PROTOCOL)
        yield Case("PINGREQ with a body", version, packet(0xC0, b"\0"), MALFORMED)
        yield Case("a ping", version, packet(0xC0), answer=packet(0xD0))


def _list_types(version: int) -> Iterator[Case]:
    for flags in range(16):
        for body in (b"", b"\0"):
            # What cannot be parsed by the standard is malformed (1.2).
            yield Case(f"type 0, flags {flags:x}, {len(body)} bytes", version, packet(flags, body), MALFORMED)
    if version == V5:
        yield from _list_auth()
    else:
        yield Case("type 15", V3, packet(0xF0), MALFORMED)
    for name, first in SERVERS.items():
        yield Case(f"{name} from a client", version, packet(first), PROTOCOL)
        for flags in (1, 2, 4, 8, 15):
            yield Case(f"{name} with flags {flags:x} [MQTT-2.1.3-1]", version, packet(first | flags), MALFORMED)
        for body in (b"\0", b"\0\0", b"\0\0\0", b"\0\1\0\0", b"\0\0\3\x21\0\x0a"):
            yield Case(f"{name} of {body.hex()} from a client", version, packet(first, body), PROTOCOL)


def _list_auth() -> Iterator[Case]:
    """Nobody may send AUTH who agreed on no method [MQTT-4.12.0-6]; what is badly written is malformed all the same."""
    for body in (b"", b"\0", b"\0\0", b"\x18", b"\x18\0", b"\x19\0", b"\x18\4\x15\0\1a", b"\xff\0", b"\1\0"):
        yield Case(f"AUTH {body.hex()}", V5, packet(0xF0, body), PROTOCOL)
    for body in (b"\x18\x7f", b"\x18\x80", b"\x18\0\0"):
        yield Case(f"AUTH {body.hex()}, badly written", V5, packet(0xF0, body), MALFORMED)

    def around(raw: bytes) -> bytes:
        return packet(0xF0, b"\x18" + raw)

    yield from properties.list_cases("AUTH", around)
    for raw in (write(0x15), write(0x15) + write(0x16), write(0x26) * 2, write(0x1F)):
        yield Case(f"AUTH with {raw.hex()} [MQTT-4.12.0-6]", V5, around(varint(len(raw)) + raw), PROTOCOL)


def _list_flags(version: int) -> Iterator[Case]:
    bodies = {raw[0] >> 4: raw[1:] for raw in in_order(version).values()} | {1: connect("again", version)[1:]}
    for kind, wanted in WANTED.items():
        for flags in range(16):
            if flags != wanted and (kind != 15 or version == V5):
                first = bytes([kind << 4 | flags])
                yield Case(f"type {kind} with flags {flags:x} [MQTT-2.1.3-1]", version, first + bodies[kind], MALFORMED)


def _list_lengths(version: int) -> Iterator[Case]:
    firsts = {"PUBLISH": 0x30, "PUBACK": 0x40, "PUBREC": 0x50, "PUBREL": 0x62, "PUBCOMP": 0x70}
    firsts |= {"SUBSCRIBE": 0x82, "UNSUBSCRIBE": 0xA2, "PINGREQ": 0xC0, "DISCONNECT": 0xE0}
    for name, first in firsts.items():
        for raw in FIVE:
            yield Case(f"{name} with a length of {raw.hex()}", version, bytes([first]) + raw, MALFORMED)
        yield Case(f"{name} of 256 MB", version, bytes([first]) + b"\xff\xff\xff\x7f", LARGE)
        if version == V5:  # [MQTT-1.5.5-1]; 3.1.1 does not say so
            for raw in (b"\x80\0", b"\x80\x80\0", b"\x80\x80\x80\0", b"\x82\0\0\1", b"\x87\x80\0"):
                yield Case(f"{name} with a length of {raw.hex()}", version, bytes([first]) + raw, MALFORMED)


def _list_first(version: int) -> Iterator[Case]:
    """[MQTT-3.1.0-1]: there is no saying which standard such a peer speaks, so nothing is said."""
    for name, raw in in_order(version).items():
        yield Case(f"{name} before CONNECT", version, raw, is_first=True, is_silent=True)
    for name, first in SERVERS.items():
        yield Case(f"{name} before CONNECT", version, packet(first, b"\0\0"), is_first=True, is_silent=True)
    whole = connect("x", version)
    for flags in range(1, 16):
        yield Case(
            f"CONNECT with flags {flags:x}", version, bytes([0x10 | flags]) + whole[1:], is_first=True, is_silent=True
        )
    for raw in FIVE:
        yield Case(f"CONNECT with a length of {raw.hex()}", version, b"\x10" + raw, is_first=True, is_silent=True)
    yield Case("CONNECT of 256 MB", version, b"\x10\xff\xff\xff\x7f", is_first=True, is_silent=True)
    for raw in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\3\1\2\0\1\0\1\xfc\3\3", b"\0" * 16, b"\xff" * 16, b"\n"):
        yield Case(f"{raw[:4]!r} for CONNECT", version, raw, is_first=True, is_silent=True)
