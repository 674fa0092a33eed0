"""The subscriptions of one session: by selector, those with full queues, and those to be retried later.

It passes pushes to the subscription they concern. The session decides what is requested from the server, and when.
"""

from __future__ import annotations

from dataclasses import replace

from ..codes import CODES, Code
from ..errors import CommandRefused, GodwitError
from ..model import Gap, Message
from .codec.push import Ended, Epochs, Marked
from .codec.reply import Refusal
from .items import Dropped
from .subscribing import State, Subscribing

PUT_OFF_MS = 5_000  # before a refused subscription is asked for again; doubles with each refusal
PUT_OFF_MS_MAX = 60_000


class Subscriptions:
    """The subscriptions, one for each selector."""

    def __init__(self) -> None:
        self._table: dict[str, Subscribing] = {}
        self._behind: set[Subscribing] = set()
        self._put_off: list[tuple[int, Subscribing]] = []
        self.paused: set[Subscribing] = set()

    def __contains__(self, selector: str) -> bool:
        return selector in self._table

    def add(self, subscribing: Subscribing) -> None:
        self._table[subscribing.selector] = subscribing

    def remove(self, subscribing: Subscribing) -> bool:
        """Remove it. False if it is not there, or another subscription has its selector."""
        if self._table.get(subscribing.selector) is not subscribing:
            return False
        del self._table[subscribing.selector]
        return True

    def message(self, message: Message) -> None:
        subscribing = self._table.get(message.pattern or message.subject)
        if subscribing is not None:
            subscribing.message(message)
            if subscribing.queue.is_full:
                self._behind.add(subscribing)

    def reported(self, push: Gap | Marked | Epochs | Dropped | Ended, node: str | None, now: int) -> None:
        """Pass a push other than a message to its subscription; ignored if that was closed meanwhile."""
        match push:
            case Marked(_, pattern) if pattern in self._table:
                self._table[pattern].marked(replace(push, node=node))
            case Epochs() if (selector := push.pattern or push.subject) in self._table:
                self._table[selector].epochs(push)
            case Gap() if (selector := push.pattern or push.subject) in self._table:
                self._table[selector].gap(push)
            case Dropped(selector) if selector in self._table:
                self._table[selector].dropped(push)
            case Ended(selector, code, reason) if selector in self._table:
                name, retry = (CODES[code].name, CODES[code].retry) if code in CODES else ("Unknown", False)
                self.refuse(self._table[selector], Refusal(None, code, name, reason, retry), now)

    def refuse(self, subscribing: Subscribing, refusal: Refusal, now: int) -> None:
        """The server refused it: it ends. One that was served before, and may be again, is retried later."""
        is_draining = refusal.code == Code.NODE_DRAINING
        if is_draining or (refusal.retry and subscribing.joins):
            subscribing.lost(f"{refusal.name}: {refusal.reason}")
            if not is_draining:  # else the next connection asks
                again_ms = min(PUT_OFF_MS << min(subscribing.refusals, 10), PUT_OFF_MS_MAX)
                subscribing.refusals += 1
                self._put_off.append((now + again_ms, subscribing))
        else:
            self.remove(subscribing)
            subscribing.end(CommandRefused(refusal.code, refusal.name, refusal.reason, retry=refusal.retry))

    def to_resume(self, now: int) -> list[Subscribing]:
        """The paused subscriptions that have room again."""
        if not self.paused:
            return []
        self.paused = {each for each in self.paused if each.is_paused}
        return [each for each in self.paused if each.queue.has_room and now >= each.resumes_at]

    def behind(self) -> set[Subscribing]:
        """The subscriptions whose queues are full."""
        if self._behind:
            self._behind = {each for each in self._behind if each.is_asked and each.queue.is_full}
        return self._behind

    @property
    def has_one_with_room(self) -> bool:
        return any(each.is_asked and not each.queue.is_full for each in self._table.values())

    def to_ask(self) -> list[Subscribing]:
        """The subscriptions to request on a new connection."""
        return [each for each in self._table.values() if not each.is_paused]

    def to_ask_again(self, now: int) -> list[Subscribing]:
        """The refused subscriptions whose wait has ended."""
        due = [subscribing for at, subscribing in self._put_off if at <= now]
        self._put_off = [each for each in self._put_off if each[0] > now]
        return [each for each in due if each.state is State.IDLE and not each.is_paused]

    def lost(self, reason: str) -> None:
        self._behind.clear()
        self._put_off.clear()
        for subscribing in self._table.values():
            subscribing.lost(reason)
            if subscribing.is_paused:
                self.paused.add(subscribing)

    def end(self, error: GodwitError | None) -> None:
        for subscribing in self._table.values():
            subscribing.end(error)
