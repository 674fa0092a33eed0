"""The part that all deliveries of a notification share: read once and cached."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import NotSent, RequestRefused
from ..model import Shipment

REMEMBERED_MAX = 1_000
REMEMBERED_BYTES_MAX = 64_000_000


@dataclass(frozen=True, slots=True)
class Letter:
    """A notification in the form for channels. `content` is JSON."""

    notification: str
    accepted_ms: int
    content: bytes
    email: bytes = b""
    """The e-mail parts as JSON: subject, text, html; empty if there are none."""
    category: str = ""
    is_required: bool = False
    """Whether receivers cannot unsubscribe from its category."""


ReadLetter = Callable[[int, str, int], Awaitable[Letter | None]]
"""Reads a notification's letter in a locale, or with a receiver's number as it was rendered for that receiver."""


class Letters:
    """Cached letters of notifications that are being sent."""

    def __init__(self, read: ReadLetter) -> None:
        self._read = read
        self._remembered: OrderedDict[tuple[int, str, int], Letter] = OrderedDict()
        self.remembered_bytes = 0

    async def find(self, shipment: Shipment) -> Letter | None:
        """The letter of a shipment, in its locale or the receiver's own; None if the notification was deleted."""
        target = shipment.target
        wanted = shipment.key.nid, target.locale, target.rid if target.is_personal else 0
        known = self._remembered.get(wanted)
        with preparing():
            letter = known or await self._read(*wanted)
        if letter is not None:
            is_known = wanted in self._remembered  # perhaps since another shipment read it
            self._remembered[wanted] = letter
            self._remembered.move_to_end(wanted)
            self.remembered_bytes += 0 if is_known else _count_bytes(letter)
            while len(self._remembered) > 1 and (
                len(self._remembered) > REMEMBERED_MAX or self.remembered_bytes > REMEMBERED_BYTES_MAX
            ):
                self.remembered_bytes -= _count_bytes(self._remembered.popitem(last=False)[1])
        return letter


@contextmanager
def preparing() -> Iterator[None]:
    """Raises NotSent for an error that says nothing about the content, such as that of a failing disk."""
    try:
        yield
    except (RequestRefused, ValueError):
        raise
    except Exception as error:
        raise NotSent(f"{type(error).__name__}: {error!s:.200}") from error


def _count_bytes(letter: Letter) -> int:
    return len(letter.content) + len(letter.email)
