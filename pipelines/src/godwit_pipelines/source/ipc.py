"""Where the record batches of a growing Arrow IPC stream are, without reading their rows.

Owns the framing: a marker, the length of the metadata, a flatbuffer, the body. Just enough of the flatbuffer is read to know
a message's body and a batch's rows; Arrow itself reads the rest. Invariant: what is found is whole; a torn tail is not there yet.
"""

from __future__ import annotations

import struct
from typing import BinaryIO, NamedTuple

_CONTINUATION = 0xFFFFFFFF
_METADATA_BYTES_MAX = 16 << 20  # a schema of some twenty columns takes 4 KiB: more is damage
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3


class Found(NamedTuple):
    """One record batch: the byte where its message begins, the byte after it, its rows."""

    start: int
    end: int
    rows: int


class FramingBroken(Exception):
    """What stands at a byte is no message of an IPC stream."""

    def __init__(self, at: int, why: str) -> None:
        self.at = at
        super().__init__(f"byte {at}: {why}")


def list_batches(file: BinaryIO, start: int, size: int) -> list[Found]:
    """The whole batches from a message's first byte on; a message that goes past `size` is a tail that still grows."""
    found: list[Found] = []
    while start + 8 <= size:
        file.seek(start)
        marker, length = struct.unpack("<II", file.read(8))
        if marker != _CONTINUATION:
            if marker == length == 0:  # blocks that were allocated and not written: the tail
                break
            raise FramingBroken(start, "no message begins here")
        if length == 0:  # the end of the stream, written when a segment is closed
            break
        if length > _METADATA_BYTES_MAX:
            raise FramingBroken(start, f"metadata of {length} bytes")
        if start + 8 + length > size:
            break
        kind, body, rows = _read_message(file.read(length), start)
        end = start + 8 + length + body
        if end > size:
            break
        if kind == _BATCH:
            found.append(Found(start, end, rows))
        elif kind not in (_SCHEMA, _DICTIONARY):
            raise FramingBroken(start, f"a message of kind {kind}")
        start = end
    return found


def _read_message(metadata: bytes, at: int) -> tuple[int, int, int]:
    """The kind of a message, the bytes of its body, and the rows if it is a record batch."""
    try:
        message = struct.unpack_from("<I", metadata, 0)[0]
        kind = _field(metadata, message, 1, "<B", 0)
        body = _field(metadata, message, 3, "<q", 0)
        rows = 0
        if kind == _BATCH:
            place = _place(metadata, message, 2)
            batch = place + struct.unpack_from("<I", metadata, place)[0]
            rows = _field(metadata, batch, 0, "<q", 0)
    except struct.error as error:
        raise FramingBroken(at, "metadata that is none") from error
    if body < 0 or rows < 0:
        raise FramingBroken(at, "a negative length")
    return kind, body, rows


def _place(buffer: bytes, table: int, slot: int) -> int:
    """Where a table's field lies; 0 if it is left out. A table points back to the list of its fields' places."""
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
