"""Parses numbers as JSON defines them. Pure.

Python also accepts `1_000`, `nan` and digits of other scripts, Java `Infinity` and `1d`. A number that only one of them accepts is an
error.
"""

from __future__ import annotations

import math
import re

NUMBER = r"-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?"
"""For Python and for Java alike, without anchors."""
_NUMBER = re.compile(NUMBER)
_COUNT = re.compile(r"-?[0-9]{1,18}")


def parse_number(text: str) -> float | None:
    """A finite number; None for everything else."""
    found = float(text) if _NUMBER.fullmatch(text) else math.inf
    return found if math.isfinite(found) else None


def parse_count(text: str) -> int | None:
    """A whole number of up to 18 digits; None for everything else."""
    return int(text) if _COUNT.fullmatch(text) else None
