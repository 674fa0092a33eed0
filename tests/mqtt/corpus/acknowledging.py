"""PUBACK, PUBREC, PUBREL and PUBCOMP (3.4 to 3.7) for messages that are not, and DISCONNECT (3.14)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mqtt.corpus import properties
from tests.mqtt.corpus.case import MALFORMED, PROTOCOL, UNKNOWN, Case, cut_short
from tests.mqtt.packets import V3, V5, ack, packet, text, varint

KINDS = {"PUBACK": 4, "PUBREC": 5, "PUBREL": 6, "PUBCOMP": 7}
PUBLISHED = {0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99}
RELEASED = {0x00, 0x92}
LEFT = {0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99}
"""The reason codes that a client may give (3.4.2.1, 3.5.2.1, 3.6.2.1, 3.7.2.1, 3.14.2.1)."""


def first_of(kind: int) -> int:
    return kind << 4 | (2 if kind == 6 else 0)


def answer_of(kind: int, version: int, packet_id: bytes = b"\0\x09", reason: int = 0) -> bytes:
    """What comes for an identifier that means nothing: PUBREC is released, PUBREL completed, in 5.0 with 0x92."""
    if kind in (4, 7) or (kind == 5 and reason >= 0x80):
        return b""
    said = b"" if version == V3 else bytes([UNKNOWN])
    return packet(0x62 if kind == 5 else 0x70, packet_id + said)


def list_cases() -> Iterator[Case]:
    for name, kind in KINDS.items():
        for version in (V3, V5):
            yield from _list_bodies(name, kind, version)
        yield from _list_reasons(name, kind)

        def around(raw: bytes, kind: int = kind) -> bytes:
            return packet(first_of(kind), b"\0\x09\0" + raw)

        for case in properties.list_cases("PUBACK", around):
            yield Case(case.name.replace("PUBACK", name), V5, case.sent, case.reason)
        for raw in (b"\x1f\0\0", b"\x1f" + text("why"), b"\x26\0\0\0\0" * 2):
            yield Case(f"{name} with {raw[:3].hex()}", V5, around(varint(len(raw)) + raw), answer=answer_of(kind, V5))
    yield from _list_leaving()


def _list_bodies(name: str, kind: int, version: int) -> Iterator[Case]:
    first = first_of(kind)
    yield from cut_short(name, first, b"\0\x09", version, range(2))
    yield Case(f"{name} of 0 [MQTT-2.2.1-3]", version, packet(first, b"\0\0"), PROTOCOL)
    for packet_id in (b"\0\1", b"\0\xff", b"\1\0", b"\xff\xff"):
        sent = packet(first, packet_id)
        yield Case(f"{name} of {packet_id.hex()}", version, sent, answer=answer_of(kind, version, packet_id))
    if version == V3:
        for more in (b"\0", b"\0\0", b"x" * 200):
            yield Case(f"{name} and {len(more)} bytes more", V3, packet(first, b"\0\x09" + more), MALFORMED)
    else:
        for more in (b"\0\0\0", b"\0\0\x26", b"\0\1\x26", b"\0\x80", b"\0\xff\xff\xff\xff\1"):
            yield Case(f"{name} and {more.hex()}", V5, packet(first, b"\0\x09" + more), MALFORMED)


def _list_reasons(name: str, kind: int) -> Iterator[Case]:
    known = RELEASED if kind in (6, 7) else PUBLISHED
    for reason in range(256):
        sent = packet(first_of(kind), b"\0\x09" + bytes([reason]))
        if reason in known:
            yield Case(f"{name} with {reason:#04x}", V5, sent, answer=answer_of(kind, V5, reason=reason))
        elif (
            reason in (0x01, 0x02, 0x04, 0x11, 0x18, 0x7F, 0xA2, 0xFF)
            or reason % 9 == 0
            or reason in PUBLISHED | {0x92}
        ):
            yield Case(f"{name} with {reason:#04x}, which is none of its reasons", V5, sent, PROTOCOL)


def _list_leaving() -> Iterator[Case]:
    for version in (V3, V5):
        yield Case("DISCONNECT", version, packet(0xE0), is_silent=True)
        yield Case("DISCONNECT, then more", version, packet(0xE0) + packet(0xC0) + ack(6, 9), is_silent=True)
    for more in (b"\0", b"\0\0", b"\4"):
        yield Case(f"DISCONNECT with {more.hex()} [MQTT-3.14.1-1]", V3, packet(0xE0, more), MALFORMED)
    for reason in range(256):
        for tail in (b"", b"\0"):
            sent = packet(0xE0, bytes([reason]) + tail)
            if reason in LEFT:
                yield Case(f"DISCONNECT with {sent[2:].hex()}", V5, sent, is_silent=True)
            elif reason % 5 == 0 or (reason > 0x7F and not tail):
                yield Case(f"DISCONNECT with {sent[2:].hex()}, no reason of a client's", V5, sent, PROTOCOL)

    def around(raw: bytes) -> bytes:
        return packet(0xE0, b"\0" + raw)

    yield from properties.list_cases("DISCONNECT", around)
    for seconds in (1, 0x7FFFFFFF, 0xFFFFFFFF):
        sent = around(b"\5\x11" + seconds.to_bytes(4))
        yield Case(f"DISCONNECT with an expiry of {seconds} for a session of none [MQTT-3.14.2-2]", V5, sent, PROTOCOL)
    for raw in (b"\5\x11\0\0\0\0", b"\6\x1f" + text("why"), b"\5\x26\0\0\0\0"):
        yield Case(f"DISCONNECT with {raw.hex()}", V5, around(raw), is_silent=True)
    yield Case("DISCONNECT and a byte too many", V5, packet(0xE0, b"\0\0\0"), MALFORMED)
