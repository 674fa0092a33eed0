"""The items of one subscription between the wire and its reader.

Bounded: at `items_max` it is full, and then nothing more is read for it, so that the server's log is the queue.  Marks and
statuses are folded into their like, so they cannot pile up.  It also knows where the reader stands: an item counts as handled
when the next one is asked for.
"""

from collections import deque
from dataclasses import replace
from typing import TypeAlias

from godwit.client.items import Gap, Item, Message, Status
from godwit.client.pushes import Mark
from godwit.client.standing import Standing

Entry: TypeAlias = Item | Mark


class ItemQueue:
    """First in, first out; `handled` is the reader's stand."""

    def __init__(self, items_max: int, handled: Standing) -> None:
        self._items_max = items_max
        self._entries: deque[Entry] = deque()
        self._in_hand: Entry | None = None
        self.handled = handled

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_full(self) -> bool:
        return len(self._entries) >= self._items_max

    @property
    def has_room(self) -> bool:
        """Room enough to begin again: half of it."""
        return len(self._entries) * 2 <= self._items_max

    def put(self, entry: Entry) -> None:
        """Append; the caller looks at `is_full` and stops reading (what one frame brought may exceed the limit)."""
        entries = self._entries
        if entries:
            last = entries[-1]
            if isinstance(entry, Mark) and isinstance(last, Mark):
                entries.pop()
            elif isinstance(entry, Status) and isinstance(last, Status):
                entries.pop()
                if entry.at is None:
                    entry = replace(entry, at=last.at, count=last.count)
        entries.append(entry)

    def take(self) -> Item | None:
        """The next item, or None when there is none now.  The one before it is handled by this."""
        self.finish()
        entries = self._entries
        while entries:
            entry = self._in_hand = entries.popleft()
            if isinstance(entry, Mark):
                self.finish()
            else:
                return entry
        return None

    def finish(self) -> None:
        """The item in hand has been handled."""
        entry, self._in_hand = self._in_hand, None
        if entry is None:
            return
        if isinstance(entry, Message):
            self.handled.note(entry)
        elif isinstance(entry, Mark):
            self.handled.mark(entry.text)
        elif isinstance(entry, Gap):
            self.handled.place(entry)
        elif isinstance(entry, Status) and entry.at is not None:
            self.handled.joined(entry.at, entry.count)
