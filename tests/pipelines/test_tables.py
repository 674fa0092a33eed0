"""The declared tables: every column has a description, and the reference pages describe the tables as they are."""

from __future__ import annotations

import pytest

from godwit_pipelines.jobs import JOBS
from godwit_pipelines.tables import TABLES, Table
from godwit_pipelines.tables.pages import pages
from tests.pipelines.conftest import ROOT


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_says_what_it_is(table: Table) -> None:
    assert table.about.endswith(".") and table.job in JOBS
    assert set(table.key) <= set(table.schema.names) and set(table.persons) <= set(table.schema.names)
    assert not table.day or table.schema[table.day].dataType.typeName() == "timestamp"
    assert all(str(field.metadata.get("comment", "")).endswith(".") for field in table.schema), table.name


def test_each_table_has_its_page_and_no_page_has_no_table() -> None:
    folder = ROOT / "docs" / "pipelines"
    for name, text in pages().items():
        assert (folder / name).exists() and (folder / name).read_text("utf-8") == text, "make generate-tables"
    kept = {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}
    assert kept == {*pages(), "audit.md", "cluster.md", "replaced.md", "runbook.md", "spark.md"}
