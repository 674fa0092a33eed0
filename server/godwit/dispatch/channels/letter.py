"""What all deliveries of a notification share: read once, remembered for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ..model import Shipment

REMEMBERED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Letter:
    """A notification, as its channels see it. `content` is JSON."""

    notification: str
    accepted_ms: int
    content: bytes
    email: bytes = b""
    """JSON of what an e-mail has of its own: subject, text, html; empty: nothing."""
    category: str = ""
    is_required: bool = False
    """Its category cannot be unsubscribed from."""


ReadLetter = Callable[[int, str], Awaitable[Letter | None]]


class Letters:
    """The letters of the notifications that are being sent."""

    def __init__(self, read: ReadLetter) -> None:
        self._read = read
        self._remembered: OrderedDict[tuple[int, str], Letter] = OrderedDict()

    async def find(self, shipment: Shipment) -> Letter | None:
        """The letter of a shipment, in its locale; None where the notification was deleted."""
        wanted = shipment.key.nid, shipment.target.locale
        letter = self._remembered.get(wanted) or await self._read(*wanted)
        if letter is not None:
            self._remembered[wanted] = letter
            self._remembered.move_to_end(wanted)
            if len(self._remembered) > REMEMBERED_MAX:
                self._remembered.popitem(last=False)
        return letter
