"""What all deliveries of a notification share: read once, remembered for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

REMEMBERED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Letter:
    """A notification, as its channels see it. `content` is JSON."""

    notification: str
    accepted_ms: int
    content: bytes


ReadLetter = Callable[[int], Awaitable[Letter | None]]


class Letters:
    """The letters of the notifications that are being sent."""

    def __init__(self, read: ReadLetter) -> None:
        self._read = read
        self._remembered: OrderedDict[int, Letter] = OrderedDict()

    async def find(self, nid: int) -> Letter | None:
        """The letter of a notification; None where it was deleted."""
        letter = self._remembered.get(nid) or await self._read(nid)
        if letter is not None:
            self._remembered[nid] = letter
            self._remembered.move_to_end(nid)
            if len(self._remembered) > REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        return letter
