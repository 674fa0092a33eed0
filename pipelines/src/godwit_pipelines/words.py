"""Formats text for a terminal: counts with the right plural, and text of publishers without control characters. Pure.

Owns the escaping of every line that the command writes. JSON for programs stays exact; on a terminal its control characters are escaped.
"""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime
from typing import Any


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 row`, `2,000 rows`. Give `plural` if it is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    r"""The text on one line, with control characters (C0, C1) and those that reorder a line (bidi) as \uXXXX."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def sentences(text: object) -> str:
    """Text of several lines: line ends and tabs stay, other control characters are escaped."""
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in str(text))


def json_line(row: dict[str, Any], *, is_terminal: bool, is_utf8: bool = True) -> str:
    """A row as one JSON object that every parser reads, in the characters that the output can show. NaN and Infinity become text, bytes
    that are not UTF-8 become {"base64": ...}.
    """
    line = json.dumps(_valid(row), ensure_ascii=not is_utf8, allow_nan=False)
    return printable(line) if is_terminal else line  # outside of its strings there is no such character


def _valid(value: Any) -> Any:
    if isinstance(value, dict):
        return {name if isinstance(name, str) else str(name): _valid(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_valid(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if value is None or isinstance(value, str | int | float):
        return value
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


def _escaped(character: str) -> str:
    number = ord(character)
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
