"""One case of the corpus: bytes, and the answer that the standard requires."""

from __future__ import annotations

from dataclasses import dataclass

from tests.mqtt.packets import V3, V5, packet

MALFORMED, PROTOCOL, VERSION, CLIENT, CREDENTIALS, RIGHTS = 0x81, 0x82, 0x84, 0x85, 0x86, 0x87
METHOD, TOPIC, UNKNOWN, RECEIVE, ALIAS, LARGE, PAYLOAD = 0x8C, 0x90, 0x92, 0x93, 0x94, 0x95, 0x99


@dataclass(frozen=True, slots=True)
class Case:
    """`sent` goes behind a CONNECT that was accepted, or is the first thing said. With a reason the connection ends: by
    CONNACK before it was accepted, else by DISCONNECT, in 3.1.1 by the close alone. Without one it goes on: `answer` comes,
    and then the answer to a ping.
    """

    name: str
    version: int
    sent: bytes
    reason: int | None = None
    answer: bytes = b""
    is_first: bool = False
    is_silent: bool = False
    """It ends, and nothing is said: there is no telling what it speaks, or the client has left itself."""

    @property
    def is_refused(self) -> bool:
        return self.reason is not None or self.is_silent


def both(name: str, sent: bytes, reason: int) -> list[Case]:
    """The same bytes are wrong in both standards."""
    return [Case(name, V3, sent, reason), Case(name, V5, sent, reason)]


STRINGS = {
    "not UTF-8": b"a\xff",
    "cut in a character": b"a\xc3",
    "an overlong character": b"\xc0\xaf",
    "a surrogate [MQTT-1.5.4-1]": b"\xed\xa0\x80",
    "the last surrogate [MQTT-1.5.4-1]": b"\xed\xbf\xbf",
    "past U+10FFFF": b"\xf4\x90\x80\x80",
    "U+0000 [MQTT-1.5.4-2]": b"a\0b",
}
"""Bytes that are no string of MQTT, in either standard."""

CONTROLS = {"U+0001": b"a\1", "U+001F": b"\x1fa", "U+007F": b"a\x7fb", "U+0080": b"\xc2\x80", "U+009F": b"\xc2\x9f"}
"""Strings that may be, and that names here may not hold."""


def cut_short(name: str, first: int, body: bytes, version: int, places: range) -> list[Case]:
    """A packet that ends too early, with a length that says so."""
    return [Case(f"{name} of {at} bytes", version, packet(first, body[:at]), MALFORMED) for at in places]


def topic_faults(empty: int) -> dict[str, tuple[bytes, int]]:
    """What a topic name may not be."""
    wild = {"a +": b"a/+", "a #": b"#", "a + in a level": b"a+b/c", "a # in the middle": b"a/#/b"}
    return (
        {name: (raw, MALFORMED) for name, raw in (STRINGS | CONTROLS).items()}
        | {name: (raw, TOPIC) for name, raw in wild.items()}
        | {"nothing": (b"", empty)}
    )


FILTERS = {
    "nothing [MQTT-4.7.3-1]": (b"", MALFORMED),
    "# not last [MQTT-4.7.1-1]": (b"a/#/b", MALFORMED),
    "# in a level [MQTT-4.7.1-1]": (b"a#", MALFORMED),
    "# before a level [MQTT-4.7.1-1]": (b"#a", MALFORMED),
    "two #": (b"##", MALFORMED),
    "+ in a level [MQTT-4.7.1-2]": (b"a+", MALFORMED),
    "+ before a level [MQTT-4.7.1-2]": (b"a/+b", MALFORMED),
    "two +": (b"++", MALFORMED),
    "+#": (b"+#", MALFORMED),
} | {name: (raw, MALFORMED) for name, raw in (STRINGS | CONTROLS).items()}
"""What a filter may not be, in SUBSCRIBE and UNSUBSCRIBE of both standards."""

SHARES = {
    "no group and no filter": (b"$share/", PROTOCOL),
    "no filter": (b"$share/g", PROTOCOL),
    "an empty filter": (b"$share/g/", PROTOCOL),
    "an empty group": (b"$share//a", PROTOCOL),
    "+ in the group": (b"$share/g+/a", MALFORMED),
    "# as the group": (b"$share/#/a", MALFORMED),
    "a bad filter": (b"$share/g/a#", MALFORMED),
}
"""[MQTT-4.8.2-1], [MQTT-4.8.2-2]; `$share/+/a` is a case of its own below: its wildcard is a whole level, so it is well formed."""
