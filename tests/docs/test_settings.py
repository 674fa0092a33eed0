"""The reference pages name every setting of both clients, with its default."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from godwit.client import Settings

UNITS = {"MiB": 1 << 20}


def read_table(page: str) -> dict[str, int]:
    """Setting → default, of the table under `| setting | default |`; a row may name several, with one default or as many."""
    table = re.search(r"^\| setting \| default .*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert table is not None
    found: dict[str, int] = {}
    for row in table[1].splitlines():
        names = re.findall(r"`(\w+)`", row.split("|")[1])
        values = re.findall(r"(\d[\d,]*)(?: (MiB))?(?:, |$)", row.split("|")[2].strip())
        numbers = [int(number.replace(",", "")) * UNITS.get(unit, 1) for number, unit in values]
        found |= dict(zip(names, numbers * len(names) if len(numbers) == 1 else numbers, strict=False))
    return found


def to_snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


@pytest.mark.parametrize("language", ["python", "javascript"])
def test_the_tables_name_every_setting_with_its_default(language: str, root: Path) -> None:
    page = (root / f"docs/reference/{language}.md").read_text()
    table = {to_snake(name): value for name, value in read_table(page).items()}
    python = {field.name: field.default for field in dataclasses.fields(Settings)}
    words = {name: value for name, value in python.items() if isinstance(value, str)}
    if language == "python":
        assert table == {name: value for name, value in python.items() if name not in words}
        assert all(f"| `{name}` | `{value}` |" in page for name, value in words.items())
        return
    assert "| `onUnknownPublish` | `resend` |" in page
    source = (root / "clients/javascript/src/session/settings.js").read_text()
    pairs = re.findall(r"^  (\w+): ([\d_]+)( << 20)?,", source, re.MULTILINE)
    assert table == {to_snake(name): int(number) << (20 if shift else 0) for name, number, shift in pairs}
