"""Rows are known by node, run and offset. Every place that joins, keys, groups or compares by the offset is listed here, and names the run
as well: after a journal began anew, or went on from a copy, offsets are given again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from godwit_pipelines.tables import TABLES

SOURCE = Path(__file__).resolve().parents[3] / "pipelines/src/godwit_pipelines"
FOLDERS = ("jobs", "transforms", "delta", "tables", "publish", "report")
OFFSET = re.compile(r"\b(?:journal_)?journal_offset\b")
RUN = re.compile(r"\brun\b")
OF_ONE_RUN = "of rows of one run: those who call it see to that"
WITHOUT_RUN = {
    "jobs/land.py without_landed": "records of a topic of Kafka, whose journal_offset to begin at is given to a source",
    "jobs/ranges.py reached_by": OF_ONE_RUN,
    "transforms/torn.py _IS_TORN": "within a subscriber's key, which has the run",
    "transforms/faults.py settle_back": "within an island, which is of one run",
    "transforms/faults.py _STRETCHES": "within an island, which is of one run",
    "transforms/faults.py _FILLED": "within an island, which is of one run",
    "transforms/faults.py _RETURNED": "within an island, which is of one run",
    "transforms/folding.py fold": "within a subscriber's key, which has the run",
    "transforms/folding.py pick": "within a subscriber's key, which has the run",
    "transforms/folding.py sum_hours": "within a subscriber's key, which has the run",
    "transforms/folding.py _NARROW": "within a subscriber's key, which has the run",
    "transforms/faults.py _ROW": "within an island, which is of one run",
    "transforms/runs.py link_runs": "of rows of `runs`, each of which begins a run",
    "delta/erasing.py _NUMBERS": "types of columns",
}
"""Where the offset stands without the run, and why that is right."""


def texts_of(found: ast.AST) -> Iterator[str]:
    """The texts of a piece of code, but for what only explains it."""
    explained = {
        id(body[0].value)
        for node in ast.walk(found)
        if isinstance(body := getattr(node, "body", None), list) and body and isinstance(body[0], ast.Expr)
    }
    for node in ast.walk(found):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explained:
            yield node.value


def pieces() -> Iterator[tuple[str, list[str]]]:
    """Each function and constant of the folders that know rows, by file and name."""
    for path in sorted(path for folder in FOLDERS for path in (SOURCE / folder).glob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            name = ""
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                name = node.name
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
            if name:
                yield f"{path.parent.name}/{path.name} {name}", list(texts_of(node))


def test_every_use_of_the_offset_names_the_run() -> None:
    uses = {name for name, texts in pieces() if any(map(OFFSET.search, texts)) and not any(map(RUN.search, texts))}
    tables = {name for name in uses if name.startswith("tables/")}
    assert uses - tables == {*WITHOUT_RUN}, "give it the run, or a reason; take a reason that is not needed out"


def test_every_key_with_an_offset_has_the_run() -> None:
    keyed = [table for table in TABLES.values() if {"journal_offset"} & {*table.key}]
    assert len(keyed) > len("messages") and all("run" in table.key for table in keyed)
