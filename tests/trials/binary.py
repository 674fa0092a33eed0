"""Frames of `godwit.v1.binary` as objects of the JSON encoding, read as protocol/binary.md says. Nothing here is the node's own code."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

REASONS = ("expired", "overrun", "epoch", "ahead", "unknown", "too_large")


class Announced(NamedTuple):
    subject: str
    epoch: int
    time: int


class Cursor:
    """A frame that is read from front to back."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def byte(self) -> int:
        self.at += 1
        return self.raw[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def string(self) -> str:
        size = self.varint()
        self.at += size
        assert self.at <= len(self.raw), self.raw.hex(" ")
        return self.raw[self.at - size : self.at].decode()

    def position(self) -> str:
        return f"{self.varint()}.{self.varint()}"


class Frames:
    """The subjects that one connection was sent, by their numbers."""

    def __init__(self) -> None:
        self._announced: dict[int, Announced] = {}

    def read(self, raw: bytes) -> dict[str, Any]:
        frame = Cursor(raw)
        kind = frame.byte()
        if kind & 0x80:
            return self._read_message(kind, frame)
        if kind == 1:
            number, epoch, time, subject, _ = (
                frame.varint(), frame.varint(), frame.varint(), frame.string(), frame.string()
            )  # fmt: skip
            self._announced[number] = Announced(subject, epoch, time)
            return {}
        if kind == 2:
            return _read_gap(frame)
        if kind == 4:
            return {"resume_token": frame.string(), "pattern": frame.string()}
        assert kind in {3, 9, 0x21}, raw.hex(" ")
        return {}

    def _read_message(self, flags: int, frame: Cursor) -> dict[str, Any]:
        subject, epoch, _ = self._announced[frame.varint()]
        said: dict[str, Any] = {"message": subject}
        sequence = 0
        if not flags & 8:
            sequence = frame.varint()
            said["at"] = f"{epoch}.{sequence}"
        frame.varint()  # the time
        if flags & 0x10:
            distance = frame.varint()
            said["after"] = f"{epoch}.{sequence - distance}" if distance else frame.position()
        if flags & 0x20:
            said["conflated"] = frame.varint()
        if flags & 0x40:
            said["reply_to"] = frame.string()
        assert flags & 3 == 0, "content that is not JSON"
        said["content"] = json.loads(frame.raw[frame.at :])
        return {**said, "snapshot": True} if flags & 4 else said


def _read_gap(frame: Cursor) -> dict[str, Any]:
    flags, reason, subject = frame.byte(), frame.byte(), frame.string()
    said: dict[str, Any] = {"gap": subject, "reason": REASONS[reason], "missed": None}
    if flags & 1:
        said["after"] = frame.position()
    if flags & 2:
        said["at"] = frame.position()
    if flags & 4:
        said["missed"] = frame.varint()
    return said


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _string(value: str) -> bytes:
    raw = value.encode()
    return varint(len(raw)) + raw


def subscribe(selector: str, options: dict[str, Any]) -> bytes:
    """The command with `after` a position, `since` and `conflate_ms`."""
    flags, rest = 0, b""
    if "after" in options:
        flags |= 1
        rest += b"".join(varint(int(number)) for number in options["after"].split("."))
    if "since" in options:
        flags |= 4
        rest += _string(options["since"])
    if "conflate_ms" in options:
        flags |= 0x40
        rest += varint(options["conflate_ms"])
    return b"\x41\x01" + bytes([flags]) + _string(selector) + rest
