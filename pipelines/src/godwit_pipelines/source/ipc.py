"""Finds the length of a message of an Arrow IPC stream, before Arrow reads it.

Owns the framing: a marker, the length of the metadata, a flatbuffer, the body. Just enough of the flatbuffer is read to know
the length of the body; Arrow itself reads the rest. Invariant: what is found is whole; a torn tail is not there yet.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

_CONTINUATION = 0xFFFFFFFF
_METADATA_BYTES_MAX = 1 << 20  # as the node: a schema of some twenty columns takes 4 KiB, more is damage
PREFIX_BYTES = 8
_RECORD_BATCH, _ALIGNMENT = 3, 8


class FramingBroken(Exception):
    """The bytes at a place are not a message of an IPC stream."""

    def __init__(self, at: int, why: str) -> None:
        self.at = at
        super().__init__(f"byte {at}: {why}")


def read_frame_lengths(read: Callable[[int, int], bytes], at: int, size: int) -> tuple[int, int] | None:
    """The bytes of a message's prefix and metadata, and those of its body; None where it is not whole, or does not begin here."""
    prefix = read(at, PREFIX_BYTES)
    if len(prefix) < PREFIX_BYTES:
        return None
    marker, length = struct.unpack("<II", prefix)
    if marker != _CONTINUATION or not 0 < length <= _METADATA_BYTES_MAX or at + PREFIX_BYTES + length > size:
        return None
    body = _read_body_bytes(read(at + PREFIX_BYTES, length), at)
    return (PREFIX_BYTES + length, body) if at + PREFIX_BYTES + length + body <= size else None


def align_buffers(content: bytes) -> bytes:
    """The message with each buffer of a batch at a multiple of eight bytes, where every writer puts them. Arrow takes no others, and a
    flipped bit moves one that is sound: the checksums of its rows tell.
    """
    try:
        message = PREFIX_BYTES + struct.unpack_from("<I", content, PREFIX_BYTES)[0]
        if _field(content, message, 1, "<B", 0) != _RECORD_BATCH:
            return content
        vector = _pointed(content, _pointed(content, message, 2), 2)
        count = struct.unpack_from("<I", content, vector)[0]
        places = range(vector + 4, vector + 4 + 16 * count, 16)
        wrong = [place for place in places if content[place] % _ALIGNMENT]
    except (struct.error, IndexError):
        return content
    if not wrong:
        return content
    changed = bytearray(content)
    for place in wrong:
        changed[place] -= changed[place] % _ALIGNMENT
    return bytes(changed)


def _pointed(buffer: bytes, table: int, slot: int) -> int:
    """The place where the table or list begins that a field points to."""
    place = _place(buffer, table, slot)
    if not place:
        raise struct.error("a field that is left out")
    pointed: int = place + struct.unpack_from("<I", buffer, place)[0]
    return pointed


def _read_body_bytes(metadata: bytes, at: int) -> int:
    try:
        message = struct.unpack_from("<I", metadata, 0)[0]
        body = _field(metadata, message, 3, "<q", 0)
    except struct.error as error:
        raise FramingBroken(at, "metadata that is none") from error
    if body < 0:
        raise FramingBroken(at, "a negative length")
    return body


def _place(buffer: bytes, table: int, slot: int) -> int:
    """The place of a table's field; 0 if it is left out. A table points back to the list of its fields' places."""
    fields = table - struct.unpack_from("<i", buffer, table)[0]
    if fields < 0:
        raise struct.error("outside of the buffer")
    if 4 + 2 * slot >= struct.unpack_from("<H", buffer, fields)[0]:
        return 0
    place: int = struct.unpack_from("<H", buffer, fields + 4 + 2 * slot)[0]
    return table + place if place else 0


def _field(buffer: bytes, table: int, slot: int, form: str, default: int) -> int:
    place = _place(buffer, table, slot)
    value: int = struct.unpack_from(form, buffer, place)[0] if place else default
    return value
