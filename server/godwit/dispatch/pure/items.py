"""Items and heads of inboxes as JSON: what is published on the node and what the API answers.

Pure. The same object in both places, so that a client needs one reader.
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
    """How far an inbox is, with its counts."""
    return {"head": head.position, "unread": head.unread, "unseen": head.unseen}


def parse_position(text: str) -> tuple[int, int] | None:
    """Epoch and SEQ of a position, or None where it is not one."""
    epoch, dot, seq = text.partition(".")
    return (int(epoch), int(seq)) if dot and is_number(epoch) and is_number(seq) else None


def is_number(text: str) -> bool:
    """Whether a text is a whole number that a row can have."""
    return text.isascii() and text.isdigit() and len(text) <= 18
