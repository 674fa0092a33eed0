"""The items of one subscription between the wire and its reader.

Bounded by items and by bytes: then it is full, and nothing more is read for it, so that the server's log is the queue.
Resume tokens and statuses are folded into their like, so they cannot pile up. It also knows where the reader stands: an item
counts as handled when the next one is asked for.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TypeAlias

from ..model import Gap, Message, Outcome
from .codec.push import Marked
from .items import Item, Status
from .position_tracker import PositionTracker

Entry: TypeAlias = Item | Marked


class Budget:
    """The bytes that all queues of one client hold, and how many they may."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes = 0

    @property
    def is_used_up(self) -> bool:
        return self.bytes >= self._bytes_max


class ItemQueue:
    """First in, first out; `handled` is the reader's stand."""

    def __init__(
        self, items_max: int, handled: PositionTracker, bytes_max: int = 1 << 62, budget: Budget | None = None
    ) -> None:
        self._items_max, self._bytes_max = items_max, bytes_max
        self._budget = budget or Budget(1 << 62)
        self._bytes = 0  # of the messages waiting
        self._entries: deque[Entry] = deque()
        self._in_hand: Entry | None = None
        self.handled = handled

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_full(self) -> bool:
        if len(self._entries) >= self._items_max or self._bytes >= self._bytes_max:
            return True
        return self._bytes > 0 and self._budget.is_used_up

    @property
    def has_room(self) -> bool:
        """Room enough to begin again: half of it."""
        return len(self._entries) * 2 <= self._items_max and self._bytes * 2 <= self._bytes_max and not self.is_full

    def put(self, entry: Entry) -> None:
        """Append; the caller looks at `is_full` and stops reading (what one frame brought may exceed the limit)."""
        entries = self._entries
        if type(entry) is Message:
            size = entry.size
            self._bytes += size
            self._budget.bytes += size
        elif entries:
            last = entries[-1]
            if isinstance(entry, Marked) and isinstance(last, Marked):
                entries.pop()
            elif isinstance(entry, Status) and isinstance(last, Status):
                entries.pop()
                if entry.position is None and _places(last):
                    entry = replace(entry, position=last.position, count=last.count)
        entries.append(entry)

    def take(self) -> Item | None:
        """The next item, or None when there is none now. The one before it is handled by this."""
        self.finish()
        entries = self._entries
        while entries:
            entry = self._in_hand = entries.popleft()
            if type(entry) is Message:
                size = entry.size
                self._bytes -= size
                self._budget.bytes -= size
                return entry
            if not isinstance(entry, Marked):
                return entry
            self.finish()
        return None

    def let_go(self) -> None:
        """Its user has left it: what it holds no longer counts for the others."""
        self._budget.bytes -= self._bytes
        self._budget = Budget(1 << 62)

    def finish(self) -> None:
        """The item in hand has been handled."""
        entry, self._in_hand = self._in_hand, None
        if entry is None:
            return
        if isinstance(entry, Message):
            self.handled.note(entry)
        elif isinstance(entry, Marked):
            self.handled.resume_token(entry.resume_token, entry.node)
        elif isinstance(entry, Gap):
            self.handled.place(entry)
        elif isinstance(entry, Status):
            self.handled.joined(entry.position if _places(entry) else None, entry.count or 0)


def _places(status: Status) -> bool:
    """Whether a reader who has seen this stands where it says: not where a gap or messages that follow say it."""
    return status.outcome is not Outcome.RESYNC and status.count is not None
