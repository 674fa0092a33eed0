"""The table of hostile inputs: which tests name each of the 72 cases, and docs/security/hostile-inputs.md's table of them.

python -m tests.hostile.table       writes it, and matrix.py's table of hostile extensions, into the guide
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import matrix

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).with_name("cases.toml")
GUIDE = ROOT / "docs" / "security" / "hostile-inputs.md"
BEGIN, END = "<!-- hostile inputs: written by tests/hostile/table.py -->", "<!-- end of hostile inputs -->"
FOLDERS = ("tests", "core/tests", "engine/tests", "clients/javascript/tests")
_NAMED = re.compile(r"\b(?:def |fn )(?:test_)?(?:case_)?(\d{1,2})_[a-z]\w*|[\"']case (\d{1,2}), ")
"""Numbers that numbers follow are of the standards' statements."""


def read_cases() -> list[dict[str, Any]]:
    """All cases, by number."""
    cases: list[dict[str, Any]] = tomllib.loads(CASES.read_text("utf-8"))["case"]
    return cases


def find_tests() -> Mapping[int, list[str]]:
    """The files that hold tests of each case."""
    found: dict[int, list[str]] = {}
    for file in _list_files():
        numbers = {int(a or b) for a, b in _NAMED.findall(file.read_text("utf-8"))}
        for number in numbers:
            found.setdefault(number, []).append(str(file.relative_to(ROOT)))
    return found


def _list_files() -> Iterator[Path]:
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".py", ".rs", ".js", ".mjs") and not {"node_modules", "dispatch"} & set(file.parts):
                yield file


def render_table() -> str:
    """The guide's part between the two comments, including them."""
    tests = find_tests()
    lines = [BEGIN, "", "| | input | answer | tests |", "|---|---|---|---|"]
    for case in read_cases():
        number = case["number"]
        held = ", ".join(f"`{file}`" for file in tests.get(number, ()))
        gets = case.get("gets") or case["left"]
        lines.append(f"| {number} | {case['input']} | {gets} | {held or '–'} |")
    return "\n".join([*lines, "", END])


def put_table(text: str) -> str:
    """The guide with both tables as they are now."""
    text = _put(text, BEGIN, render_table(), END)
    return _put(text, matrix.BEGIN, matrix.render_matrix(), matrix.END)


def _put(text: str, begin: str, table: str, end: str) -> str:
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return before + table + after


if __name__ == "__main__":
    GUIDE.write_text(put_table(GUIDE.read_text("utf-8")), "utf-8")
