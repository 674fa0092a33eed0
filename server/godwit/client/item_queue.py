"""The received items of one subscription that wait for the program.

Bounded by items and by bytes. When it is full, the client reads nothing more for it, and messages wait in the node's log.
A resume token or status replaces an earlier one, so that these do not accumulate. The queue keeps the reader's resume
point: an item counts as handled when the next one is requested.
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
    """The bytes that all queues of one client hold, and their limit."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.bytes = 0

    @property
    def is_used_up(self) -> bool:
        return self.bytes >= self._bytes_max


class ItemQueue:
    """First in, first out; `handled` is the reader's resume point."""

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
        """Whether at least half of the queue is free."""
        return len(self._entries) * 2 <= self._items_max and self._bytes * 2 <= self._bytes_max and not self.is_full

    def put(self, entry: Entry) -> None:
        """Append an item. The caller checks `is_full` and stops reading; the items of one frame may exceed the limit."""
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
        """The next item, or None if there is none now. The item before it becomes handled."""
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
        """The program has closed it: its bytes no longer count for the other subscriptions."""
        self._budget.bytes -= self._bytes
        self._budget = Budget(1 << 62)

    def finish(self) -> None:
        """Mark the item that was taken last as handled."""
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
    """Whether a status moves the resume point. It does not if a gap or messages that follow it do."""
    return status.outcome is not Outcome.RESYNC and status.count is not None
