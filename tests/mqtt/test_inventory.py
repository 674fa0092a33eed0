"""Every normative statement of both standards is held by a test that exists, binds clients alone, or asks nothing of this node."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent
STANDARDS: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "statements.toml").read_text("utf-8"))
COUNTS = {"3_1_1": 141, "5_0": 251}
"""As their appendices list them."""
NONE = {"5_0": {"2.2.1-1"}}
"""Numbers that a standard passes over."""


def list_statements(standard: str) -> list[str]:
    table = STANDARDS[standard]
    return [*table["client"], *table["absent"], *{number for numbers in table["held"].values() for number in numbers}]


@pytest.mark.parametrize("standard", COUNTS)
def test_each_statement_stands_in_one_place_and_none_is_missing(standard: str) -> None:
    numbers = Counter(list_statements(standard))
    assert not [number for number, count in numbers.items() if count > 1]
    last: dict[str, int] = {}
    for number in numbers:
        section, _, place = number.rpartition("-")
        last[section] = max(last.get(section, 0), int(place))
    every = {f"{section}-{place}" for section, end in last.items() for place in range(1, end + 1)}
    assert every - NONE.get(standard, set()) == set(numbers)
    assert len(numbers) == COUNTS[standard]


def test_the_tests_that_hold_them_are_there() -> None:
    texts = "\n".join(file.read_text("utf-8") for file in FOLDER.glob("test_*.py"))
    there = set(re.findall(r"^def (test_\w+)", texts, re.MULTILINE))
    named = {name for table in STANDARDS.values() for name in table["held"]}
    assert named <= there, named - there
