"""Text for terminals: counts, and texts of others with control characters escaped. Pure."""

from __future__ import annotations

import json


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 row`, `2,000 rows`; pass a plural that is not formed with an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def printable(text: str, *, kept: str = "") -> str:
    """Escape control characters (C0, C1) and bidirectional ones as \\uXXXX, except those in `kept`. With its blanks in
    `kept`, JSON stays valid and equal, because it has other control characters only inside of strings.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}" if character <= "\uffff" else json.dumps(character)[1:-1]


def shown(value: object) -> str:
    """A value for the text of an error. One that cannot be shown, such as a very long number, is replaced by its type."""
    try:
        return repr(value)[:80]
    except Exception:  # the value's own code
        return f"a {type(value).__name__}"
