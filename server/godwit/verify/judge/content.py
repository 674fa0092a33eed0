"""Contents: made from a seed and an identity, and recognized by their bytes.

The content of each publish has its identity (publisher, number), so that a received message identifies its publish; only
identities need to be stored. The style of a subject decides the form of its contents. Pure, and the same in every run of
a seed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

FIELDS = ("f0", "f1", "f2", "f3", "f4", "f5")
MANY_BITS = (1 << 64) - 1
BYTES_LEAD = b"\x00\xff\xfe"


class Style(IntEnum):
    """The form of a subject's contents."""

    OBJECT = 0  # JSON objects: merged by conflation and in the snapshot
    ARRAY = 1  # JSON that does not merge
    TEXT = 2
    BYTES = 3


class Identity(NamedTuple):
    """Identifies a publish: the publisher's number, and its count of publishes, from 1."""

    publisher: int
    number: int

    def __str__(self) -> str:
        return f"publish {self.publisher}/{self.number}"


def mix(*numbers: int) -> int:
    """A 64-bit hash of some numbers (splitmix64)."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = (state ^ (number & MANY_BITS)) + 0x9E3779B97F4A7C15 & MANY_BITS
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MANY_BITS
        state = (state ^ state >> 27) * 0x94D049BB133111EB & MANY_BITS
        state ^= state >> 31
    return state


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of one run. Most are padded to `size`; one in a hundred is ten times larger, one in a thousand a hundred
    times, so that messages span several packets and frames.
    """

    seed: int
    size: int = 120
    is_varied: bool = True

    def make(self, identity: Identity, style: Style) -> bytes:
        """The content of a publish, as it is sent."""
        bits = mix(self.seed, *identity)
        if style is Style.OBJECT:
            return json.dumps(self.fields(identity), separators=(",", ":")).encode()
        pad = "x" * self._padding(bits)
        if style is Style.ARRAY:
            return json.dumps([*identity, pad], separators=(",", ":")).encode()
        text = f"{identity.publisher} {identity.number} {pad}".encode()
        return text if style is Style.TEXT else BYTES_LEAD + text

    def fields(self, identity: Identity) -> dict[str, object]:
        """The members of an object: always the identity, of the others about half, and sometimes padding."""
        bits = mix(self.seed, *identity)
        fields: dict[str, object] = {"p": identity.publisher, "n": identity.number}
        for place, name in enumerate(FIELDS):
            if bits >> place & 1:
                fields[name] = f"{identity.number}.{bits >> 16 & 0xFFFF:x}"
        padding = self._padding(bits)
        if padding:
            fields["pad"] = "x" * padding
        return fields

    def _padding(self, bits: int) -> int:
        if not self.is_varied:
            return self.size
        lot = (bits >> 32) % 1_000
        return self.size * (100 if lot == 0 else 10 if lot <= 10 else 1)


def read_identity(content: bytes) -> Identity | None:
    """The identity in a content; None if no publisher here makes such a content. The expected history checks it."""
    try:
        if content.startswith(b"{"):
            read = json.loads(content)
            return Identity(int(read["p"]), int(read["n"]))
        if content.startswith(b"["):
            read = json.loads(content)
            return Identity(int(read[0]), int(read[1]))
        publisher, number, _ = content.removeprefix(BYTES_LEAD).split(b" ", 2)
        return Identity(int(publisher), int(number))
    except (ValueError, KeyError, IndexError, TypeError):
        return None


def read_fields(content: bytes) -> dict[str, object] | None:
    """The members of a merged object; None if it is not an object, or repeats a member."""
    twice = False

    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal twice
        built = dict(pairs)
        twice = twice or len(built) != len(pairs)
        return built

    try:
        read = json.loads(content, object_pairs_hook=build)
    except ValueError:
        return None
    return read if isinstance(read, dict) and not twice else None
