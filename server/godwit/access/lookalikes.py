"""Names that look alike to a person: `partner:` and `Partner:`, one with a Cyrillic letter, `shop1:` and `shopl:`.

Pure. For the node they are different holders; a reader of a list or log cannot distinguish them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import combinations

# Small letters of the Cyrillic and the Greek alphabet, and digits, that look like Latin letters.
_ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u043a\u043c\u043d\u0442\u0432\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c4\u03c7\u03c5\u03b2\u03b5\u03b7\u03bc01|",
    "aeopcyxijskmhtbaopviktxubenmoll",
)
_SEPARATORS = frozenset("-_.:/@ ")


def read_skeleton(name: str) -> str:
    """A text that is equal for names that look alike."""
    plain = unicodedata.normalize("NFKD", name).casefold().translate(_ALIKE)
    letters = "".join(one for one in plain if not unicodedata.combining(one) and one not in _SEPARATORS)
    return letters.replace("rn", "m").replace("vv", "w").replace("i", "l")


def list_lookalikes(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of different names that look alike."""
    return [(a, b) for a, b in combinations(sorted(set(names)), 2) if a and b and read_skeleton(a) == read_skeleton(b)]
