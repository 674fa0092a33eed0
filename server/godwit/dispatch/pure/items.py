"""Items and heads of inboxes as JSON: as the node publishes them and the API returns them.

Pure. Both use the same object, so that a client needs one parser.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..model import Flag, Head, InboxItem

_FLAGS = [[flag.name.lower() for flag in Flag if flags & flag] for flags in range(sum(Flag) + 1)]
"""The names of each combination of flags: looked up for every item."""


def show_item(item: InboxItem) -> dict[str, Any]:
    """An item or a change of it."""
    return {
        "at": f"{item.head.epoch}.{item.seq}",
        "first": f"{item.head.epoch}.{item.first}",
        "id": item.notification,
        "time": item.at_ms,
        "flags": _FLAGS[item.flags],
        "content": msgspec.Raw(item.content),
        "unread": item.head.unread,
        "unseen": item.head.unseen,
    }


def show_head(head: Head) -> dict[str, Any]:
    """The position and counts of an inbox."""
    return {"head": head.position, "unread": head.unread, "unseen": head.unseen}


def parse_position(text: str) -> tuple[int, int] | None:
    """Epoch and SEQ of a position; None if the text is not a position."""
    epoch, dot, seq = text.partition(".")
    return (int(epoch), int(seq)) if dot and is_number(epoch) and is_number(seq) else None


def is_number(text: str) -> bool:
    """Whether a text is an integer that fits into a row."""
    return text.isascii() and text.isdigit() and len(text) <= 18
