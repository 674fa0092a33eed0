"""How long to wait before the next connection: full jitter, or the time that the server asked for.

The first try follows within `first_ms`; the bound doubles with each failure up to `max_ms`. A wait is random between 0
and the bound, so that clients which lost their connections together do not reconnect together. The caller passes the
random number. If frames of the server break two connections in a row, the client ends: the same frame would break each
further one.
"""

from __future__ import annotations

import json
from typing import Any

from ..codes import CODES
from .errors import ClientError

DOUBLINGS_MAX = 30  # beyond it the bound is `max_ms` anyway
WISH_MS_MAX = 3_600_000  # a server may ask for an hour, not for a year
HELD_MS = 60_000  # a connection that held so long before a frame broke it makes that a first time


def reconnect_wait_ms(failures: int, random: float, first_ms: int, max_ms: int) -> int:
    """The wait in milliseconds before the next try, after `failures` failures since the last good connection."""
    return int(random * min(max_ms, first_ms << min(failures, DOUBLINGS_MAX)))


def wish_of(reason: str) -> int | None:
    """`reconnect_after_ms` of a close reason that is a JSON object."""
    try:
        read: Any = json.loads(reason)
        wish = read.get("reconnect_after_ms")
    except (ValueError, AttributeError, RecursionError):
        return None
    return min(max(0, wish), WISH_MS_MAX) if isinstance(wish, int) else None


def words_of(code: int | None, reason: str) -> str:
    """A close reason as text. The node sends a JSON object with a name and sometimes a sentence; other reasons are returned unchanged."""
    if not reason and code is not None:
        return f"the server closed the connection ({code})"
    try:
        read: Any = json.loads(reason)
        name, why = read.get("name"), read.get("reason")
    except (ValueError, AttributeError, RecursionError):
        return reason
    if not isinstance(name, str):
        return why if isinstance(why, str) else reason
    wish = wish_of(reason)
    when = "later" if wish is None else f"after {wish} ms"
    sentence = CODES[code].sentence.replace("after reconnect_after_ms", when) if code in CODES else ""
    return ": ".join(filter(None, (name, why if isinstance(why, str) else sentence)))


class Backoff:
    """Failures since the last connection that held for `first_ms`, and what the server asked for."""

    def __init__(self, first_ms: int, max_ms: int) -> None:
        self._first_ms, self._max_ms = first_ms, max_ms
        self._failures = 0
        self._wish_ms: int | None = None

    def lost(self, served_ms: int | None, wish_ms: int | None) -> None:
        """A connection ended after it was served for `served_ms` (None: it never was), or could not be opened."""
        has_held = served_ms is not None and served_ms >= self._first_ms
        self._failures = 0 if has_held else self._failures + 1
        self._wish_ms = wish_ms

    def wait_ms(self, random: float) -> int:
        """The wait in milliseconds, from a random number in [0, 1)."""
        if self._wish_ms is not None:
            return self._wish_ms
        return reconnect_wait_ms(max(self._failures - 1, 0), random, self._first_ms, self._max_ms)


class Faults:
    """Whether the last connection that was served broke because of a frame."""

    def __init__(self) -> None:
        self._has_broken = self._was_misread = False

    def lost(self, fault: str | None, served_ms: int | None) -> ClientError | None:
        """A connection ended, because of a frame (`fault`, a sentence) or otherwise. Returns the error that ends the client,
        or None. `served_ms` is None if the connection was never served; without a fault that changes nothing.
        """
        if fault is None and served_ms is None:
            return None
        is_again = self._has_broken and (served_ms is None or served_ms < HELD_MS)
        self._has_broken = fault is not None
        if fault is None or not is_again:
            return None
        return ClientError(f"{fault}, twice in a row; the client does not connect a third time")

    def is_first_misread(self, is_misread: bool, was_served: bool) -> bool:
        """Whether the server could not read a frame of this connection, and read all of the one before. Then the client
        reconnects at once. After a second such failure it waits as after any other.
        """
        is_first = is_misread and not self._was_misread
        if was_served:
            self._was_misread = is_misread
        return is_first
