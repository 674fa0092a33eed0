"""Words on a terminal: counts as a person reads them, and texts of others shown, never obeyed. Pure."""

from __future__ import annotations

import json


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 row`, `2,000 rows`; a plural that is more than an s is given."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def printable(text: str, *, kept: str = "") -> str:
    """Escapes control characters (C0, C1) and those that reorder a line (bidi) as \\uXXXX, but for those in `kept`.

    JSON stays valid and equal where `kept` names its blanks: it has the others inside of strings only.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}" if character <= "\uffff" else json.dumps(character)[1:-1]


def shown(value: object) -> str:
    """A value in an error's sentence; what cannot be shown, such as a number of very many digits, is named by its type."""
    try:
        return repr(value)[:80]
    except Exception:  # the value's own code
        return f"a {type(value).__name__}"
