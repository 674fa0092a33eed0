"""The windows on disk, so that statistics survive a restart: one file with a checksum, replaced as a whole.

A line of JSON describes the content; the doubles of the buckets follow, ring by ring. A file that cannot be read does not
prevent the start: it is renamed, and the windows begin empty. Invariant: exactly the saved windows are loaded, or
nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import zlib
from array import array
from pathlib import Path
from typing import Any

from .moments import FIELDS
from .stats_snapshot import Series
from .windows import LEVELS, SERIES_MAX, Bucket, Windows

FORMAT = 1
NAME = "statistics"
FILE_BYTES_MAX = 1 << 30
_DOUBLE_BYTES = 8


class WindowFileInvalid(Exception):
    """The file exists and was not written by a node, or is damaged."""


class WindowFile:
    """The file in a data directory."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME

    def save(self, content: bytes) -> None:
        """Replace the file by the result of `dump_windows`. Raises OSError; the old file is then unchanged."""
        fresh = self.path.with_suffix(".new")
        try:
            with fresh.open("wb") as output:
                output.write(content)
                output.flush()
                os.fsync(output.fileno())
            fresh.replace(self.path)
        finally:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)

    def load(self) -> Windows | None:
        """The saved windows; None if there is no file. Raises WindowFileInvalid after renaming the file."""
        try:
            if self.path.stat().st_size > FILE_BYTES_MAX:
                raise WindowFileInvalid("is larger than any node makes it")
            return parse_windows(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, WindowFileInvalid) as error:
            with contextlib.suppress(OSError):
                self.path.replace(self.path.with_suffix(".unreadable"))
            raise WindowFileInvalid(f"{self.path} cannot be read: {error}") from error


def dump_windows(windows: Windows) -> bytes:
    """The content of the file for these windows."""
    body, rings = bytearray(), []
    for ring in windows.rings:
        buckets = [*ring.closed, *([ring.open] if ring.open is not None else [])]
        rings.append(
            {
                "width_s": ring.width_s,
                "is_open": ring.open is not None,
                "buckets": [[bucket.number, len(bucket.row)] for bucket in buckets],
            }
        )
        for bucket in buckets:
            body += _swap(bucket.row).tobytes()
    head = {
        "format": FORMAT,
        "time_s": windows.time_s,
        "series": [[list(series.scope), series.metric] for series in windows.series],
        "rings": rings,
        "crc32": zlib.crc32(body),
    }
    return json.dumps(head, separators=(",", ":")).encode() + b"\n" + body


def parse_windows(content: bytes) -> Windows:
    """The windows of a file's content; raises WindowFileInvalid, ValueError, KeyError or TypeError if it is not valid."""
    line, _, body = content.partition(b"\n")
    head: dict[str, Any] = json.loads(line)
    if head["format"] != FORMAT or [ring["width_s"] for ring in head["rings"]] != [width_s for width_s, _ in LEVELS]:
        raise WindowFileInvalid("is of another version")
    if zlib.crc32(body) != head["crc32"]:
        raise WindowFileInvalid("does not have the sum it says: it was cut or changed")
    windows = Windows()
    windows.time_s = float(head["time_s"])
    if len(head["series"]) > SERIES_MAX:
        raise WindowFileInvalid("holds more series than a node has")
    for scope, metric in head["series"]:
        windows.place(Series(tuple(map(str, scope)), str(metric)))
    at = 0
    for ring, saved in zip(windows.rings, head["rings"], strict=True):
        for number, length in saved["buckets"]:
            part = body[at : at + length * _DOUBLE_BYTES]
            at += len(part)
            if length % FIELDS or length > len(windows.series) * FIELDS or len(part) != length * _DOUBLE_BYTES:
                raise WindowFileInvalid("holds a bucket of a wrong length")
            ring.closed.append(Bucket(int(number), _swap(array("d", part))))
        if saved["is_open"]:
            ring.open = ring.closed.pop()
    return windows


def _swap(row: array[float]) -> array[float]:
    """Convert doubles to little-endian, as in the file, and back."""
    if sys.byteorder == "little":
        return row
    swapped = array("d", row)
    swapped.byteswap()
    return swapped
