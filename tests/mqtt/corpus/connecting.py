"""CONNECT (3.1): its name and level, its flags, its fields, its properties, its will."""

from __future__ import annotations

from collections.abc import Iterator

from tests.mqtt.corpus import properties
from tests.mqtt.corpus.case import (
    CLIENT,
    CONTROLS,
    CREDENTIALS,
    MALFORMED,
    METHOD,
    PAYLOAD,
    PROTOCOL,
    RIGHTS,
    STRINGS,
    VERSION,
    Case,
    topic_faults,
)  # fmt: skip
from tests.mqtt.packets import V3, V5, connect, packet, props, text, varint

CLEAN, WILL, WILL_RETAIN, PASSWORD, USER = 2, 4, 0x20, 0x40, 0x80


def body(
    version: int,
    flags: int = CLEAN,
    *fields: bytes,
    properties: bytes = b"\0",
    name: bytes = b"MQTT",
    level: int | None = None,
) -> bytes:
    """A CONNECT's body out of its parts; `properties` with their length."""
    head = text(name) + bytes([version if level is None else level, flags]) + b"\0\x3c"
    return head + (properties if version == V5 else b"") + b"".join(fields)


def case(name: str, version: int, raw: bytes, reason: int) -> Case:
    return Case(name, version, packet(0x10, raw), reason, is_first=True)


def list_cases() -> Iterator[Case]:
    for version in (V3, V5):
        yield from _list_heads(version)
        yield from _list_flags(version)
        yield from _list_fields(version)
        yield from _list_wills(version)
        yield from _list_cuts(version)
    yield from _list_properties()


def _list_heads(version: int) -> Iterator[Case]:
    for level in (0, 1, 2, 3, 6, 7, 0x7F, 0x83, 0x84, 0x85, 0xFF):
        # A level that is neither standard's is answered in the one that is nearest.
        speaks = V5 if level & 0x7F >= V5 else V3  # the highest bit is a bridge's
        raw = body(version, CLEAN, text("x"), level=level)
        yield case(f"level {level} [MQTT-3.1.2-2]", speaks, raw, VERSION)
    for name in (b"", b"M", b"MQT", b"mqtt", b"MQTTT", b"MQTU", b"MQIsdp", b"MQTT\0", b"\xff\xff\xff\xff"):
        yield case(f"the name {name!r} [MQTT-3.1.2-1]", version, body(version, CLEAN, text("x"), name=name), VERSION)


def _list_flags(version: int) -> Iterator[Case]:
    for flags in (1, 3, CLEAN | WILL | 1, 0xC3, 0xFF):
        yield case(
            f"flags {flags:02x}: the reserved one [MQTT-3.1.2-3]", version, body(version, flags, text("x")), MALFORMED
        )
    for qos in (1, 2, 3):
        raw = body(version, CLEAN | qos << 3, text("x"))
        yield case(f"no will, of QoS {qos} [MQTT-3.1.2-11]", version, raw, MALFORMED)
    yield case("no will, retained [MQTT-3.1.2-13]", version, body(version, CLEAN | WILL_RETAIN, text("x")), MALFORMED)
    fields = (text("x"), props(version), text("w"), text("m"))
    yield case("a will of QoS 3 [MQTT-3.1.2-12]", version, body(version, CLEAN | WILL | 0x18, *fields), MALFORMED)
    secret = body(version, CLEAN | PASSWORD, text("x"), text("secret"))
    if version == V3:
        yield case("a password, no user name [MQTT-3.1.2-22]", V3, secret, MALFORMED)
        yield Case("no name, not clean [MQTT-3.1.3-8]", V3, connect("", V3, clean=False), CLIENT, is_first=True)


def _list_fields(version: int) -> Iterator[Case]:
    for name, raw in STRINGS.items():
        yield case(f"a client name: {name}", version, body(version, CLEAN, text(raw)), MALFORMED)
        user = body(version, CLEAN | USER, text("x"), text(raw))
        yield case(f"a user name: {name}", version, user, MALFORMED)
    odd = CONTROLS | {"+": b"a+b", "#": b"#", "%": b"%c", "long": b"n" * 65_535, "257 bytes": b"n" * 257}
    for name, raw in odd.items():
        yield case(f"a client name with {name}", version, body(version, CLEAN, text(raw)), CLIENT)
    for name, flags, fields in (
        ("a field too many [MQTT-3.1.2-16]", CLEAN, (text("x"), text("u"))),
        ("a byte too many", CLEAN, (text("x"), b"\0")),
        ("no user name [MQTT-3.1.2-17]", CLEAN | USER, (text("x"),)),
        ("half a user name", CLEAN | USER, (text("x"), b"\0\5us")),
        ("a password too many [MQTT-3.1.2-18]", CLEAN | USER, (text("x"), text("u"), text("p"))),
        ("no password [MQTT-3.1.2-19]", CLEAN | USER | PASSWORD, (text("x"), text("u"))),
        ("half a password", CLEAN | USER | PASSWORD, (text("x"), text("u"), b"\0\5pa")),
        ("a will, and nothing of it", CLEAN | WILL, (text("x"),)),
        ("a will's topic alone", CLEAN | WILL, (text("x"), props(version), text("w"))),
        ("half a will's topic", CLEAN | WILL, (text("x"), props(version), b"\0\5w")),
        ("half a will's payload", CLEAN | WILL, (text("x"), props(version), text("w"), b"\0\5m")),
        ("a will without its flag", CLEAN, (text("x"), props(version), text("w"), text("m"))),
        ("nothing after the head", CLEAN, ()),
        ("half a client name", CLEAN, (b"\0\5ab",)),
    ):
        yield case(name, version, body(version, flags, *fields), MALFORMED)
    for name, raw in CONTROLS.items():
        yield case(f"a user name with {name}", version, body(version, CLEAN | USER, text("x"), text(raw)), CREDENTIALS)
    password = body(version, CLEAN | USER | PASSWORD, text("x"), text("u"), text(b"\xff"))
    yield case("a password that is no text", version, password, CREDENTIALS)


def _list_wills(version: int) -> Iterator[Case]:
    for name, (raw, reason) in topic_faults(MALFORMED).items():
        fields = (text("x"), props(version), text(raw), text("m"))
        yield case(f"a will's topic: {name}", version, body(version, CLEAN | WILL, *fields), reason)
    for topic in ("$SYS/a", "$CONTROL/dynamic-security/v1", "$share/g/a"):
        for qos in range(3):
            fields = (text("x"), props(version), text(topic), text("m"))
            yield case(
                f"a will on {topic}, QoS {qos}", version, body(version, CLEAN | WILL | qos << 3, *fields), RIGHTS
            )
    if version == V5:
        fields = (text("x"), b"\2\1\1", text("w"), text(b"\xff"))
        yield case("a will that is no text, and says so", V5, body(V5, CLEAN | WILL, *fields), PAYLOAD)
        for what, bad in {"a +": b"a/+", "a #": b"#", "nothing": b"", "U+0000": b"\0"}.items():
            answers = b"\x08" + text(bad)
            reason = MALFORMED if what == "U+0000" else PROTOCOL
            fields = (text("x"), varint(len(answers)) + answers, text("w"), text("m"))
            yield case(f"a will's response topic: {what}", V5, body(V5, CLEAN | WILL, *fields), reason)


def _list_cuts(version: int) -> Iterator[Case]:
    whole = connect("name", version, will=("w", b"m"), username="user", password=b"secret", properties=b"\x11\0\0\0\1")[
        2:
    ]
    for at in range(7, len(whole)):
        yield case(f"CONNECT cut at {at}", version, whole[:at], MALFORMED)
    if version == V3:
        for at in range(7):  # before its level there is no telling what it speaks
            yield Case(f"CONNECT cut at {at}", V3, packet(0x10, whole[:at]), is_first=True, is_silent=True)


def _list_properties() -> Iterator[Case]:
    def around(raw: bytes) -> bytes:
        return packet(0x10, body(V5, CLEAN, text("x"), properties=raw))

    def around_will(raw: bytes) -> bytes:
        return packet(0x10, body(V5, CLEAN | WILL, text("x"), raw, text("w"), text("m")))

    method = b"\x15" + text("m")
    for found in (
        *properties.list_cases("CONNECT", around, {0x16: method}),
        *properties.list_cases("will", around_will),
    ):
        yield Case(found.name, V5, found.sent, found.reason, is_first=True)
    yield case("data without a method", V5, body(V5, CLEAN, text("x"), properties=b"\4\x16" + text("d")), PROTOCOL)
    for name in ("m", "SCRAM-SHA-256", "GS2-KRB5", ""):
        raw = b"\x15" + text(name)
        yield case(
            f"the method {name!r} [MQTT-4.12.0-1]",
            V5,
            body(V5, CLEAN, text("x"), properties=varint(len(raw)) + raw),
            METHOD,
        )
        raw += b"\x16" + text("d")
        yield case(
            f"the method {name!r}, with data", V5, body(V5, CLEAN, text("x"), properties=varint(len(raw)) + raw), METHOD
        )
