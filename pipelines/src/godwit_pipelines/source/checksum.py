"""CRC-32C over rows as protocol/events.toml lays them down, a whole batch at a time.

Each field is a byte, 0 for null or 1, then 8 bytes of a number or time, or 4 bytes of length and the bytes. Arrow joins those
column by column; only the checksum itself is taken row by row, by the processor's own instruction.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from crc32c import crc32c

CHECKSUM = "crc"
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def checksums(batch: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The checksum of each row over all fields but the checksum itself, in their order."""
    parts: list[pa.Array] = []
    fixed: list[Bytes] = []  # neighbours of fixed width are laid side by side before Arrow sees them

    def lay_down() -> None:
        if fixed:
            parts.append(_binary(np.concatenate(fixed, axis=1)))
            fixed.clear()

    for field in batch.schema:
        if field.name == CHECKSUM:
            continue
        column = batch.column(field.name)
        head, content = _parts_of(column)
        if column.null_count:
            lay_down()
            parts.append(_binary(head, np.asarray(column.is_valid())))
        else:
            fixed.append(head)
        if content is not None:
            lay_down()
            parts.append(content)
    lay_down()
    if not parts:  # a damaged schema has the checksum alone
        return np.zeros(batch.num_rows, np.int64)
    joined = pc.binary_join_element_wise(*parts, b"") if len(parts) > 1 else parts[0]
    offsets = np.frombuffer(joined.buffers()[1], np.int32)[joined.offset : joined.offset + len(joined) + 1].tolist()
    content = memoryview(joined.buffers()[2] or b"")
    return np.fromiter(
        (crc32c(content[start:end]) for start, end in itertools.pairwise(offsets)), np.int64, len(joined)
    )


def _parts_of(column: pa.Array) -> tuple[Bytes, pa.Array | None]:
    """A field's bytes of fixed width (presence, and the number or length), and its bytes of any width."""
    kind = column.type
    rows = len(column)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        content = column.cast(pa.binary()).fill_null(b"")
        return _head(pc.binary_length(content).to_numpy(zero_copy_only=False), np.dtype("<u4")), content
    if pa.types.is_list(kind):
        filled = column.fill_null([]) if column.null_count else column
        lengths = pc.list_value_length(filled).to_numpy(zero_copy_only=False)
        values = filled.flatten().cast(pa.int64()).to_numpy(zero_copy_only=False).astype("<i8")
        ends = np.concatenate(([0], np.cumsum(lengths, dtype=np.int32) * 8)).astype(np.int32)
        content = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(values.tobytes())])
        return _head(lengths, np.dtype("<u4")), content
    if pa.types.is_floating(kind):
        numbers = column.fill_null(0.0).to_numpy(zero_copy_only=False).astype("<f8").view("<i8")
    elif pa.types.is_timestamp(kind):
        numbers = column.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    else:
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return _head(numbers, np.dtype("<i8")), None


def _head(numbers: np.ndarray[Any, Any], width: np.dtype[Any]) -> Bytes:
    laid = np.empty(len(numbers), np.dtype([("present", "u1"), ("number", width)]))
    laid["present"] = 1
    laid["number"] = numbers
    return laid.view(np.uint8).reshape(len(numbers), 1 + width.itemsize)


def _binary(laid: Bytes, valid: np.ndarray[Any, np.dtype[np.bool_]] | None = None) -> pa.Array:
    """Rows of bytes as a binary column; a null is the one byte 0."""
    rows, width = laid.shape
    if valid is None:
        ends = np.arange(rows + 1, dtype=np.int32) * width
        return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(laid.tobytes())])
    laid = laid.copy()
    laid[:, 0] = valid
    keep = np.repeat(valid[:, None], width, axis=1)
    keep[:, 0] = True
    ends = np.concatenate(([0], np.cumsum(np.where(valid, width, 1)))).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(ends), pa.py_buffer(laid[keep].tobytes())])
