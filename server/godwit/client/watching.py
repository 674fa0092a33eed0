"""One watch: the last known interest of each selector, and the changes its reader has not seen.

Interest is a state: for a slow reader only the latest report on each selector is kept. The server sends the whole state
between two marks, on each connection and after a client fell behind. A selector that is not between them has no
subscribers.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import GodwitError
from ..model import Interest
from .codec.command import Watch


class Watching:
    """The pure part of a watch; `wake` is called when there is something new."""

    def __init__(self, selector: str) -> None:
        self.selector = selector
        self.is_ended = False
        self.is_complete = False  # the server has sent the whole state
        self.error: GodwitError | None = None
        self.wake: Callable[[], None] = lambda: None
        self._known: set[str] = set()  # selectors reported to the reader as having subscribers
        self._changes: dict[str, bool] = {}
        self._unconfirmed: set[str] = set()  # reported before the state that is being sent

    def ask(self, id: int) -> Watch:
        return Watch(id, self.selector)

    def state_reported(self, *, is_complete: bool) -> None:
        """The server begins to send the state, or has sent all of it."""
        self.is_complete = is_complete
        if is_complete:
            gone, self._unconfirmed = self._unconfirmed, set()
            for selector in gone:
                self.reported(Interest(selector, False))
            self.wake()
        else:
            self._unconfirmed = {selector for selector in self._known if self._changes.get(selector, True)}
            self._unconfirmed.update(selector for selector, listens in self._changes.items() if listens)

    def reported(self, interest: Interest) -> None:
        if not meets(self.selector, interest.subject):
            return
        self._unconfirmed.discard(interest.subject)
        self._changes.pop(interest.subject, None)
        if interest.has_subscribers != (interest.subject in self._known):
            self._changes[interest.subject] = interest.has_subscribers
        self.wake()

    def take(self) -> Interest | None:
        """The next change, or None if there is none now."""
        for selector in self._changes:
            subscribers = self._changes.pop(selector)
            (self._known.add if subscribers else self._known.discard)(selector)
            return Interest(selector, subscribers)
        return None

    def end(self, error: GodwitError | None) -> None:
        self.is_ended, self.error = True, error
        self.wake()


def meets(one: str, other: str) -> bool:
    """Whether some subject matches both; each is a subject or a pattern."""
    return _meet(one.split("/")[1:], other.split("/")[1:], leading=True)


def _meet(one: list[str], other: list[str], leading: bool) -> bool:
    for index in range(max(len(one), len(other))):
        first = one[index] if index < len(one) else None
        second = other[index] if index < len(other) else None
        first_is_leading = leading and index == 0
        if first == "**" or second == "**":
            opposite = second if first == "**" else first
            return not (first_is_leading and _is_reserved(opposite))
        if first is None or second is None:
            return False
        if "*" in (first, second):
            opposite = second if first == "*" else first
            if first_is_leading and _is_reserved(opposite):
                return False
        elif first != second:
            return False
    return True


def _is_reserved(segment: str | None) -> bool:
    return segment is not None and segment.startswith("$")
