"""The known state of one inbox: items in their latest state, counts, and the age of the oldest item in each list.

Pure: from the items that the node sent and the answers of dispatch, it decides what is new, what is old, and whether
something is missing. protocol/vectors/inbox.json has its cases. Invariants: everything up to `known` has been processed;
a list has every item of its filter that arrived at or after its horizon, once, the newest first; the counts are those at
`known`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from ...model import Position

NEWEST = "0.999999999999999999"
Filter: TypeAlias = Literal["active", "unread", "archived"]


class InboxItem(msgspec.Struct, frozen=True):
    """An item in its latest state."""

    at: str
    """The position of its latest change."""
    first: str
    """The position at which it arrived: it never changes, and orders the lists."""
    id: str
    """Of its notification."""
    unread: int
    """Of the whole inbox, after this change."""
    unseen: int
    flags: tuple[str, ...] = ()
    """seen, read, archived, confirmed, recalled."""
    time: int = 0
    """When it arrived, in milliseconds since 1970."""
    content: Any = None

    @property
    def is_gone(self) -> bool:
        """Whether the application recalled it, a newer item replaced it, or it was removed as the oldest."""
        return "recalled" in self.flags


class InboxHead(msgspec.Struct, frozen=True):
    """How far an inbox is."""

    head: str
    unread: int
    unseen: int


class InboxPage(msgspec.Struct, frozen=True):
    """The answer of dispatch to a fetch."""

    head: str
    unread: int
    unseen: int
    complete: bool
    items: tuple[InboxItem, ...]
    subject: str = ""


class Verdict(StrEnum):
    """The result of processing something received. BEHIND: something is missing. RESTART: the inbox was recreated; discard
    the known state.
    """

    NEW = "new"
    OLD = "old"
    BEHIND = "behind"
    RESTART = "restart"


class _Kept(NamedTuple):
    item: InboxItem
    at: int
    first: int


class InboxState:
    """The known state of one inbox. `known` is None before the first page, and again after a restart."""

    def __init__(self, items_max: int) -> None:
        """`items_max`: how many items are kept in addition to the requested pages. The oldest are dropped and can be loaded again."""
        self._items_max = items_max
        self._bound = items_max
        """How many are kept now: more than `items_max` after older pages were loaded."""
        self._kept: dict[str, _Kept] = {}
        self._horizons: dict[str, int] = {}
        """The SEQ of the oldest item of a list; 0 if the list is complete."""
        self.known: Position | None = None
        self.unread = 0
        self.unseen = 0

    def take_live(self, item: InboxItem) -> Verdict:
        """Process an item or change from the node."""
        at = Position.parse(item.at)
        verdict = self._judge(at)
        if verdict is not Verdict.BEHIND or self.known is None or at.sequence != self.known.sequence + 1:
            return verdict
        self._keep(item)
        self._take_counts(at, item)
        return Verdict.NEW

    def take_head(self, head: InboxHead) -> Verdict:
        """Process the inbox's position and counts. Counts may change without a change of items, because dispatch removes old ones."""
        at = Position.parse(head.head)
        verdict = self._judge(at)
        if verdict is not Verdict.OLD or at != self.known:
            return verdict
        if (head.unread, head.unseen) == (self.unread, self.unseen):
            return Verdict.OLD
        self._take_counts(at, head)
        return Verdict.NEW

    def take_changes(self, page: InboxPage) -> Verdict:
        """Process changes after `known`. BEHIND: fetch again, there are more."""
        head = Position.parse(page.head)
        if self.known is None or head.epoch != self.known.epoch:
            return self._restart()
        for item in page.items:
            self._keep(item)
        if not page.complete:
            if page.items:
                at = Position.parse(page.items[-1].at)
                if at.sequence > self.known.sequence:
                    self.known = at  # the counts are those of the head, which is not reached yet
            return Verdict.BEHIND
        if head.sequence >= self.known.sequence:
            self._take_counts(head, page)
        return Verdict.NEW

    def take_older(self, page: InboxPage, shown: Filter, before: str) -> Verdict:
        """Process a page of a list that was requested with `before` of this state. If the horizon has changed since, the
        page is dropped, because items between the page and the kept ones may be missing.
        """
        head = Position.parse(page.head)
        if before != (self.before(shown) or ""):
            return self._judge(head)
        if self.known is None:
            self._take_counts(head, page)
        elif head.epoch != self.known.epoch:
            return self._restart()
        if page.complete:
            self._horizons[shown] = 0
        elif page.items:
            self._horizons[shown] = _sequence_of(page.items[-1].first)
        for item in page.items:
            self._put(item)
        self._bound = max(self._bound, len(self._kept))  # else a page would be forgotten while it is loaded
        return Verdict.BEHIND if self.known is not None and head.sequence > self.known.sequence else Verdict.NEW

    def list_items(self, shown: Filter) -> list[InboxItem]:
        """The loaded items of a filter, the newest first."""
        horizon = self._horizon(shown)
        if horizon is None:
            return []
        return [kept.item for kept in self._sorted() if _shows(shown, kept.item) and kept.first >= horizon]

    def before(self, shown: Filter) -> str | None:
        """The position before which the next page of a list begins; None if there are no older items."""
        horizon = self._horizon(shown)
        if horizon == 0:
            return None
        return NEWEST if horizon is None or self.known is None else f"{self.known.epoch}.{horizon}"

    def changed_after(self, sequence: int) -> list[InboxItem]:
        """The known items whose latest change is after this position, in the order of the changes."""
        last = 0 if self.known is None else self.known.sequence
        found = [kept for kept in self._kept.values() if sequence < kept.at <= last]
        return [kept.item for kept in sorted(found, key=lambda kept: kept.at)]

    def _judge(self, at: Position) -> Verdict:
        if self.known is None:
            return Verdict.BEHIND
        if at.epoch != self.known.epoch:
            return Verdict.OLD if at.epoch < self.known.epoch else self._restart()
        return Verdict.OLD if at.sequence <= self.known.sequence else Verdict.BEHIND

    def _restart(self) -> Verdict:
        self._kept.clear()
        self._horizons.clear()
        self._bound = self._items_max
        self.known = None
        self.unread = self.unseen = 0
        return Verdict.RESTART

    def _keep(self, item: InboxItem) -> None:
        self._put(item)
        if len(self._kept) > self._bound:
            kept = self._sorted()[: self._bound]
            self._kept = {entry.item.id: entry for entry in kept}
            self._horizons = {shown: max(horizon, kept[-1].first) for shown, horizon in self._horizons.items()}

    def _put(self, item: InboxItem) -> None:
        at, known = _sequence_of(item.at), self._kept.get(item.id)
        if known is not None and known.at >= at:
            return
        self._kept[item.id] = _Kept(item, at, _sequence_of(item.first))

    def _horizon(self, shown: Filter) -> int | None:
        """The oldest arrival of a list. The list of unread items contains at least what the active list contains."""
        own = self._horizons.get(shown)
        active = self._horizons.get("active") if shown == "unread" else None
        if own is None or active is None:
            return active if own is None else own
        return min(own, active)

    def _sorted(self) -> list[_Kept]:
        return sorted(self._kept.values(), key=lambda kept: -kept.first)

    def _take_counts(self, at: Position, counts: InboxItem | InboxHead | InboxPage) -> None:
        self.known, self.unread, self.unseen = at, counts.unread, counts.unseen


def _shows(shown: Filter, item: InboxItem) -> bool:
    if "recalled" in item.flags or ("archived" in item.flags) != (shown == "archived"):
        return False
    return shown != "unread" or "read" not in item.flags


def _sequence_of(position: str) -> int:
    return Position.parse(position).sequence
