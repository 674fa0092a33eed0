"""SUBSCRIBE (3.8) and UNSUBSCRIBE (3.10): filters, options, shares, identifiers."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mqtt.corpus import properties
from tests.mqtt.corpus.case import FILTERS, MALFORMED, PROTOCOL, RIGHTS, SHARES, Case, cut_short
from tests.mqtt.packets import V3, V5, packet, props, text

SUBSCRIBE, UNSUBSCRIBE = 0x82, 0xA2


def ask(first: int, version: int, *filters: bytes, packet_id: bytes = b"\0\x09", properties: bytes = b"\0") -> bytes:
    return packet(first, packet_id + (properties if version == V5 else b"") + b"".join(filters))


def granted(first: int, version: int, *codes: int) -> bytes:
    said = b"" if first == UNSUBSCRIBE and version == V3 else bytes(codes)
    return packet(0x90 if first == SUBSCRIBE else 0xB0, b"\0\x09" + props(version) + said)


def list_cases() -> Iterator[Case]:
    for version in (V3, V5):
        for name, first, tail in (("SUBSCRIBE", SUBSCRIBE, b"\0"), ("UNSUBSCRIBE", UNSUBSCRIBE, b"")):
            yield from _list_bodies(name, first, tail, version)
            yield from _list_filters(name, first, tail, version)
        yield from _list_options(version)
        yield from _list_refused(version)
    yield from _list_properties()


def _list_bodies(name: str, first: int, tail: bytes, version: int) -> Iterator[Case]:
    zero = ask(first, version, text("a") + tail, packet_id=b"\0\0")
    yield Case(f"{name} of 0 [MQTT-2.2.1-3]", version, zero, PROTOCOL)
    yield Case(f"{name} of nothing", version, ask(first, version), PROTOCOL)
    whole = b"\0\x09" + props(version) + text("ab") + tail
    empty = len(whole) - len(text("ab") + tail)
    yield from cut_short(name, first, whole, version, range(empty))
    yield from cut_short(name, first, whole, version, range(empty + 1, len(whole)))
    more = whole + text("c") + tail
    yield from cut_short(f"{name} of two", first, more, version, range(len(whole) + 1, len(more)))
    yield Case(f"{name} and a byte too many", version, packet(first, whole + b"\0"), MALFORMED)
    far = packet(first, b"\0\x09" + props(version) + b"\xff\xffa" + tail)
    yield Case(f"{name} of a filter longer than its packet", version, far, MALFORMED)


def _list_filters(name: str, first: int, tail: bytes, version: int) -> Iterator[Case]:
    for what, (raw, reason) in FILTERS.items():
        yield Case(f"{name}: {what}", version, ask(first, version, text(raw) + tail), reason)
        behind = ask(first, version, text("a") + tail, text(raw) + tail)
        yield Case(f"{name}: {what}, behind a good one", version, behind, reason)
        before = ask(first, version, text(raw) + tail, text("a") + tail)
        yield Case(f"{name}: {what}, before a good one", version, before, reason)
    if version == V5:  # in 3.1.1 a share is a topic like any other
        for what, (raw, reason) in SHARES.items():
            yield Case(f"{name}: a share with {what}", version, ask(first, version, text(raw) + tail), reason)
    good = (
        "#",
        "+",
        "/",
        "//",
        "+/+",
        "/+",
        "+/",
        "a/#",
        "/#",
        "+/#",
        "a/+/b",
        " ",
        "é",
        "a" * 1000,
        "$share/g/a",
        "$share/g/#",
    )
    for filter_ in good:
        answer = granted(first, version, 0 if first == SUBSCRIBE else 0x11)
        sent = ask(first, version, text(filter_) + tail)
        yield Case(f"{name} {filter_[:12]!r}", version, sent, answer=answer)


def _list_options(version: int) -> Iterator[Case]:
    for byte in range(256):
        qos, handling = byte & 3, byte >> 4 & 3
        sent = ask(SUBSCRIBE, version, text("a") + bytes([byte]))
        is_reserved = byte & (0xFC if version == V3 else 0xC0) != 0
        name = f"options {byte:#04x}"
        if is_reserved or (version == V3 and qos == 3):
            yield Case(f"{name}: reserved bits [MQTT-3.8.3-5]", version, sent, MALFORMED)
        elif qos == 3 or handling == 3:
            yield Case(f"{name}: no such value [MQTT-3.8.3-4]", version, sent, PROTOCOL)
        else:
            yield Case(name, version, sent, answer=granted(SUBSCRIBE, version, qos))
    if version == V5:
        for byte in (4, 5, 6, 12):
            sent = ask(SUBSCRIBE, V5, text("$share/g/a") + bytes([byte]))
            yield Case(f"a share with options {byte:#04x}: no local [MQTT-3.8.3-4]", V5, sent, PROTOCOL)


def _list_refused(version: int) -> Iterator[Case]:
    """Well-formed filters that this node refuses, one by one."""
    filters = {"$SYS/#": RIGHTS, "$SYS/a": RIGHTS, "a/*/b": 0x8F, "**": 0x8F, "a" * 1025: 0x8F}
    for filter_, reason in filters.items():
        said = 0x80 if version == V3 else reason
        sent = ask(SUBSCRIBE, version, text(filter_) + b"\1")
        yield Case(f"SUBSCRIBE {filter_[:9]}", version, sent, answer=granted(SUBSCRIBE, version, said))
        sent = ask(SUBSCRIBE, version, text("a") + b"\1", text(filter_) + b"\1", text("b") + b"\2")
        answer = granted(SUBSCRIBE, version, 1, said, 2)
        yield Case(f"SUBSCRIBE {filter_[:9]} among others [MQTT-3.8.4-6]", version, sent, answer=answer)


def _list_properties() -> Iterator[Case]:
    for name, first, tail in (("SUBSCRIBE", SUBSCRIBE, b"\0"), ("UNSUBSCRIBE", UNSUBSCRIBE, b"")):

        def around(raw: bytes, first: int = first, tail: bytes = tail) -> bytes:
            return ask(first, V5, text("a") + tail, properties=raw)

        yield from properties.list_cases(name, around)
    for number in (b"\1", b"\x7f", b"\x80\1", b"\xff\xff\xff\x7f"):
        raw = b"\x0b" + number
        sent = ask(SUBSCRIBE, V5, text("a") + b"\0", properties=bytes([len(raw)]) + raw)
        yield Case(f"identifier {number.hex()}", V5, sent, answer=granted(SUBSCRIBE, V5, 0))
