"""Offsets whose rows cannot be read, as extents: each comes out once, as one row with a fault.

Pure. An extent is as long as what cannot be read, whatever tasks and batches it is cut by: it belongs to the one that holds its first
offset. Invariant: an offset that was asked for is a row's or an extent's, and no offset is in two extents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...transforms.ranges import Range, without
from ..columns import FAULT, FAULT_BYTES, FAULT_NEXT

Offsets = np.ndarray[Any, np.dtype[np.int64]]


class Lost(NamedTuple):
    """Offsets from `first` up to, not including, `next`, and how many bytes of the file they took, if that is known."""

    first: int
    next: int
    bytes: int | None = None


def ranges_of(offsets: Offsets) -> list[Range]:
    """The runs of offsets that follow each other."""
    if not len(offsets):
        return []
    cuts = np.flatnonzero(np.diff(offsets) > 1)
    firsts, lasts = offsets[np.append(0, cuts + 1)], offsets[np.append(cuts, len(offsets) - 1)]
    return [(int(first), int(last) + 1) for first, last in zip(firsts, lasts, strict=True)]


def belonging(
    missing: Offsets, known: Iterable[Lost], left_out: Iterable[Range], first: int, next: int
) -> Iterator[Lost]:
    """The extents of a task with these offsets, which misses some of them. `known` are extents that may reach beyond it."""
    reaching = [each for each in known if each.first < next and each.next > first]
    others = without(ranges_of(missing), [(each.first, each.next) for each in reaching])
    for each in [*reaching, *(Lost(*found) for found in others)]:
        for begin, end in without([(each.first, each.next)], left_out):
            if first <= begin < next:
                yield Lost(begin, end, each.bytes if (begin, end) == each[:2] else None)


def lost_rows(
    node: str, time: int, schema: pa.Schema, lost: Iterable[Lost], why: str, runs: Sequence[str]
) -> pa.RecordBatch:
    """A row for each extent: its node and first offset, the run of that, a time nearby, its end, its bytes, and why it is lost."""
    firsts, nexts, sizes = ([*each] for each in zip(*lost, strict=True))
    known = {
        "node": pa.array([node] * len(firsts), pa.string()),
        "run": pa.array(runs, pa.string()),
        "journal_offset": pa.array(firsts, pa.int64()),
        "time": pa.array([time] * len(firsts), pa.timestamp("us", "UTC")),
    }
    columns = [known.get(field.name, _blank(field, len(firsts))) for field in schema]
    faults = [pa.array([why] * len(firsts), pa.string()), pa.array(nexts, pa.int64()), pa.array(sizes, pa.int64())]
    return pa.RecordBatch.from_arrays([*columns, *faults], names=[*schema.names, FAULT, FAULT_NEXT, FAULT_BYTES])


def _blank(field: pa.Field, rows: int) -> pa.Array:
    if field.nullable:
        return pa.nulls(rows, field.type)
    blank: Any = b"" if pa.types.is_binary(field.type) else "" if pa.types.is_string(field.type) else 0
    if pa.types.is_list(field.type):
        blank = []
    return pa.array([blank] * rows).cast(field.type) if rows else pa.array([], field.type)
