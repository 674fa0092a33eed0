"""Saves the positions of one client's subscriptions to the mapping that the program passed, at intervals until the client is
closed.

A failed save is logged and repeated. If the last one fails, closing the client raises its error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, MutableMapping
from inspect import isawaitable, iscoroutine
from weakref import WeakValueDictionary

from ...errors import PositionFileHeld
from ..resume_point import ResumePoint
from ..subscription import Subscription
from .file import PositionFile

log = logging.getLogger("godwit.client")


class SavedPositions:
    """The subscriptions whose positions are saved, and their unsaved changes."""

    def __init__(
        self, positions: MutableMapping[str, object], on_failed: Callable[[Exception], object] | None = None
    ) -> None:
        self._positions, self._on_failed = positions, on_failed
        self._is_open = self._has_failed = False
        self._kept: dict[str, Subscription] = {}
        self._unsaved: set[str] = set()  # moved, and not put into the mapping yet
        self._last: WeakValueDictionary[str, Subscription] = (
            WeakValueDictionary()
        )  # of each selector, also when it has ended

    def keep(self, subscription: Subscription) -> None:
        if (earlier := self._last.get(subscription.selector)) is not None:
            earlier.read_late = _later_one_counts
        self._last[subscription.selector] = self._kept[subscription.selector] = subscription
        subscription.read_late = self._keep_again

    def _keep_again(self, subscription: Subscription) -> None:
        """It has ended, but its user still reads what was received before."""
        self._kept[subscription.selector] = subscription

    def resume_point(self, selector: str) -> ResumePoint | None:
        """The saved resume point of a selector, of this client or an earlier one."""
        if (earlier := self._kept.get(selector)) is not None:
            try:
                self._note()
            except Exception as error:  # the user's own mapping
                self._failed(error)
            if selector in self._unsaved:
                return earlier.resume_point or None
        saved = self._positions.get(selector)
        if isawaitable(saved):
            if iscoroutine(saved):
                saved.close()  # else Python warns that it was never awaited
            raise TypeError("positions returned an awaitable: expected the saved value itself")
        return None if saved is None else ResumePoint.from_json(saved)

    def handled(self) -> None:
        """Mark every item that the program has taken as handled."""
        for subscription in self._kept.values():
            subscription.handled()

    async def open(self) -> None:
        """Open the file. Raises PositionFileHeld if another process uses it."""
        if isinstance(self._positions, PositionFile):
            await self._positions.open()
            self._is_open = True

    def close(self) -> None:
        """Save for the last time; raises the mapping's error."""
        try:
            self.save()
        finally:
            if isinstance(self._positions, PositionFile) and self._is_open:
                self._is_open = False
                self._positions.close()

    async def renew_every(self, seconds: float) -> None:
        """Renew the lease on the file at intervals; raises PositionFileHeld once another process has it."""
        while isinstance(self._positions, PositionFile):
            await asyncio.sleep(seconds)
            try:
                self._positions.lease.renew()
            except PositionFileHeld:
                raise
            except Exception as error:
                log.warning("could not renew the lease on the positions, retrying: %s", error)

    async def save_every(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                self.save()
                self._has_failed = False
            except PositionFileHeld:
                raise
            except Exception as error:  # a full disk, a missing folder, the user's own mapping
                self._failed(error)

    def save(self) -> None:
        """Save changes. Raises the mapping's error; the changes stay unsaved then."""
        self._note()
        if isinstance(self._positions, PositionFile):
            self._positions.save()

    def _failed(self, error: Exception) -> None:
        """Log a failure, but only the first of consecutive ones."""
        if self._has_failed:
            return
        self._has_failed = True
        log.error("could not save positions, retrying", exc_info=error)
        try:
            if self._on_failed is not None:
                self._on_failed(error)
        except Exception:  # the user's own code
            log.exception("on_save_failed raised")

    def _note(self) -> None:
        """Write changes to the mapping. An error does not prevent the others; raises the first one after all of them."""
        self._unsaved.update(selector for selector, subscription in self._kept.items() if subscription.has_moved())
        failure: Exception | None = None
        for selector, subscription in list(self._kept.items()):
            try:
                if selector in self._unsaved:
                    self._put(selector, subscription.resume_point)
            except Exception as error:  # the user's own mapping
                failure = failure or error
                continue
            self._unsaved.discard(selector)
            if subscription.is_ended:
                del self._kept[selector]
        if failure is not None:
            raise failure

    def _put(self, selector: str, resume_point: ResumePoint) -> None:
        if resume_point:
            self._positions[selector] = resume_point.to_json()
        else:  # after a gap of the whole pattern the saved position leads nowhere: it would only repeat the gap
            self._positions.pop(selector, None)


def _later_one_counts(subscription: Subscription) -> None:
    """Another subscription of its selector has begun, and continues from its position."""
