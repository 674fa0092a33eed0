"""One watch: the last known interest of each selector, and the changes its reader has not seen.

Interest is a state: when the reader is behind, only the latest word on each selector waits.  A new connection tells the state
first, in which those who left meanwhile do not appear; so everything known is taken as gone until it is told again.
"""

from collections.abc import Callable

from godwit.client.commands import Watch
from godwit.client.errors import ClientError
from godwit.client.items import Interest
from godwit.client.selectors import meets


class Watching:
    """The pure part of a watch; `wake` is called when there is something new."""

    def __init__(self, selector: str) -> None:
        self.selector = selector
        self.is_ended = False
        self.error: ClientError | None = None
        self.wake: Callable[[], None] = lambda: None
        self._known: set[str] = set()  # selectors that the reader was told have subscribers
        self._changes: dict[str, bool] = {}

    def ask(self, id: int) -> Watch:
        for selector in self._known:
            self._changes.setdefault(selector, False)
        return Watch(id, self.selector)

    def told(self, interest: Interest) -> None:
        if not meets(self.selector, interest.selector):
            return
        self._changes.pop(interest.selector, None)
        if interest.subscribers != (interest.selector in self._known):
            self._changes[interest.selector] = interest.subscribers
        self.wake()

    def take(self) -> Interest | None:
        """The next change, or None when there is none now."""
        for selector in self._changes:
            subscribers = self._changes.pop(selector)
            (self._known.add if subscribers else self._known.discard)(selector)
            return Interest(selector, subscribers)
        return None

    def end(self, error: ClientError | None) -> None:
        self.is_ended, self.error = True, error
        self.wake()
