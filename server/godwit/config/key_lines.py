"""The line of each key in a TOML file, so that an error can name it.

Pure. The standard library's parser returns values without lines. Therefore headers and keys are found by their form, and
multi-line strings are skipped. A key that is not found, for example in an inline table, gets the line of its table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_KEY = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=(.*)")
_HEADER = re.compile(rf"[ \t]*\[{{1,2}}[ \t]*({_DOTTED})[ \t]*\]")
_LONG_QUOTES = ('"""', "'''")


class KeyLines(NamedTuple):
    """A file's name, and the line of each key by its path."""

    name: str
    lines: Mapping[tuple[str, ...], int] = MappingProxyType({})

    def tell(self, *path: str) -> str:
        """The source of one value, such as `file node.toml:12`; without a line if it is not known."""
        known = next((path[:end] for end in range(len(path), 0, -1) if path[:end] in self.lines), None)
        return f"file {self.name}:{self.lines[known]}" if known else f"file {self.name}"


def find_key_lines(name: str, text: str) -> KeyLines:
    """The lines of all keys in a TOML text."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    quotes = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if quotes:
            quotes = "" if line.count(quotes) % 2 else quotes
            continue
        if header := _HEADER.match(line):
            table = _split(header.group(1))
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            names = _split(key.group(1))
            for end in range(1, len(names) + 1):
                lines.setdefault((*table, *names[:end]), number)
            quotes = next((quote for quote in _LONG_QUOTES if key.group(2).count(quote) % 2), "")
    return KeyLines(name, MappingProxyType(lines))


def _split(dotted: str) -> tuple[str, ...]:
    """The parts of a dotted key; empty if it is not a key, for example within a multi-line string."""
    try:
        value: Any = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    names = []
    while isinstance(value, dict):
        [(name, value)] = value.items()
        names.append(name)
    return tuple(names)
