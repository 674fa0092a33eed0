"""The properties of MQTT 5.0 (2.2.2.2): for each packet that a client sends, every property well and badly written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.mqtt.corpus.case import MALFORMED, PROTOCOL, STRINGS, Case
from tests.mqtt.packets import V5, text, varint

Build = Callable[[bytes], bytes]
"""A packet around a property length and properties, as they are written."""

TYPES = {
    0x01: "byte", 0x02: "four", 0x03: "string", 0x08: "string", 0x09: "binary", 0x0B: "varint", 0x11: "four",
    0x12: "string", 0x13: "two", 0x15: "string", 0x16: "binary", 0x17: "byte", 0x18: "four", 0x19: "byte",
    0x1A: "string", 0x1C: "string", 0x1F: "string", 0x21: "two", 0x22: "two", 0x23: "two", 0x24: "byte",
    0x25: "byte", 0x26: "pair", 0x27: "four", 0x28: "byte", 0x29: "byte", 0x2A: "byte",
}  # fmt: skip
"""Table 2-4: the type of each property."""

PLACES: dict[str, frozenset[int]] = {
    "CONNECT": frozenset({0x11, 0x15, 0x16, 0x17, 0x19, 0x21, 0x22, 0x26, 0x27}),
    "will": frozenset({0x01, 0x02, 0x03, 0x08, 0x09, 0x18, 0x26}),
    "PUBLISH": frozenset({0x01, 0x02, 0x03, 0x08, 0x09, 0x23, 0x26}),
    "PUBACK": frozenset({0x1F, 0x26}),
    "SUBSCRIBE": frozenset({0x0B, 0x26}),
    "UNSUBSCRIBE": frozenset({0x26}),
    "DISCONNECT": frozenset({0x11, 0x1F, 0x26}),
    "AUTH": frozenset({0x15, 0x16, 0x1F, 0x26}),
}
"""What a client may send where. A subscription identifier in PUBLISH and a server reference in DISCONNECT are a server's."""

UNKNOWN = (0x00, 0x04, 0x05, 0x06, 0x07, 0x0A, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x14, 0x1B, 0x1D, 0x1E, 0x20, 0x2B, 0x7F)
"""Numbers that name no property."""

FLAGS, NOT_ZERO = {0x01, 0x17, 0x19}, {0x0B, 0x21, 0x27}
"""Properties that are 0 or 1, and those that may not be 0."""


def write_value(number: int, value: int = 1) -> bytes:
    """A value of the property's type."""
    match TYPES[number]:
        case "byte":
            return bytes([value])
        case "two":
            return value.to_bytes(2)
        case "four":
            return value.to_bytes(4)
        case "varint":
            return varint(value)
        case "pair":
            return text("k") + text("v")
        case _:
            return text("p")


def write(number: int, value: int = 1) -> bytes:
    return bytes([number]) + write_value(number, value)


def list_cases(place: str, build: Build, need: dict[int, bytes] | None = None) -> Iterator[Case]:
    """Every property in one place. `need`: properties that must stand beside another one."""
    allowed, beside = PLACES[place], need or {}

    def case(name: str, raw: bytes, reason: int) -> Case:
        return Case(f"{place}: {name}", V5, build(varint(len(raw)) + raw), reason)

    for number in UNKNOWN:
        yield case(f"property {number:#04x}, which is not", bytes([number, 1]), MALFORMED)
    for raw in (b"\x80\1", b"\xff\x7f", b"\x80\x80\1", b"\xff\xff\x7f", b"\x80\x80\x80\1", b"\xff\xff\xff\x7f"):
        yield case(f"property {raw.hex()}, which is not", raw + b"\1", MALFORMED)
    yield case("an identifier not in its shortest form", b"\xa6\0" + text("k") + text("v"), MALFORMED)
    for number in TYPES:
        name, raw = f"property {number:#04x}", write(number)
        if number in allowed:
            yield from _list_allowed(place, case, number, beside.get(number, b""))
        elif (number == 0x0B and place == "PUBLISH") or (number == 0x1C and place == "DISCONNECT"):
            yield case(f"{name}, which is a server's", raw, PROTOCOL)
        else:
            yield case(f"{name} of another packet", raw, MALFORMED)
            yield case(f"{name} of another packet, cut short", raw[:-1], MALFORMED)
    yield from _list_lengths(place, build)


def _list_allowed(place: str, case: Callable[[str, bytes, int], Case], number: int, beside: bytes) -> Iterator[Case]:
    name, raw = f"property {number:#04x}", write(number)
    for at in range(1, len(raw)):
        yield case(f"{name} cut at {at}", beside + raw[:at], MALFORMED)
    if number != 0x26:
        yield case(f"{name} twice", beside + raw + raw, PROTOCOL)
        yield case(f"{name} twice, apart", beside + raw + write(0x26) + write(number, 2 - (number in FLAGS)), PROTOCOL)
    if number in FLAGS:
        for value in (2, 0x80, 0xFF):
            yield case(f"{name} of {value}", beside + write(number, value), PROTOCOL)
    if number in NOT_ZERO:
        yield case(f"{name} of 0", beside + write(number, 0), PROTOCOL)
    if TYPES[number] in ("string", "pair"):
        for what, bad in STRINGS.items():
            tail = text("v") if TYPES[number] == "pair" else b""
            yield case(f"{name}: {what}", beside + bytes([number]) + text(bad) + tail, MALFORMED)
            if tail:
                yield case(f"{name}: its value is {what}", beside + bytes([number]) + text("k") + text(bad), MALFORMED)
    if TYPES[number] == "varint":
        for what, bad in {
            "five bytes": b"\xff\xff\xff\xff\1",
            "not the shortest": b"\x81\0",
            "no end": b"\x80",
        }.items():
            yield case(f"{name}: {what}", beside + bytes([number]) + bad, MALFORMED)


def _list_lengths(place: str, build: Build) -> Iterator[Case]:
    """The property length itself."""
    pair = write(0x26)
    for what, raw in {
        "past the end": b"\x7f" + pair,
        "far past the end": b"\xff\xff\xff\x7f" + pair,
        "of five bytes": b"\x80\x80\x80\x80\1",
        "not in its shortest form": b"\x80\0",
        "inside a property": varint(len(pair) - 1) + pair,
    }.items():
        yield Case(f"{place}: a property length {what}", V5, build(raw), MALFORMED)
