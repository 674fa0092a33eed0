"""A commit that is empty, half or gone: every reader and writer of the table ends with a sentence that names it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.exceptions import DeltaError
from pyspark.sql.types import LongType, StructField, StructType

from godwit_pipelines.delta.columns import arrow_schema
from godwit_pipelines.delta.commits import commit_files
from godwit_pipelines.delta.files import Written, write_files
from godwit_pipelines.delta.log import open_table
from godwit_pipelines.errors import TableBroken
from godwit_pipelines.lake import Lake
from godwit_pipelines.schemas import ACCESS
from tests.pipelines.conftest import Runs
from tests.pipelines.transforms.rows import frame

CUTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "zeros": lambda content: bytes(len(content)),
    "without its end": lambda content: content[:-40],
    "first line only": lambda content: content[: content.index(b"\n")],
    "without its last line": lambda content: content[: content.rindex(b"\n") + 1],
}


def come(lake: Lake, number: int) -> None:
    row = {"node": "a", "run": "r", "journal_offset": number, "connection": number, "kind": "connected", "time": number}
    lake.append("bronze.access", frame(lake.spark, ACCESS, [row]), app="test", batch=number)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("version", [2, 3])
def test_a_commit_that_is_not_whole_ends_the_job_and_is_named(
    lake: Lake, run_job: Runs, cut: str, version: int
) -> None:
    for number in range(3):
        come(lake, number)
    path = Path(lake.path("bronze.access"))
    commit = path / "_delta_log" / f"{version:020}.json"
    whole = commit.read_bytes()
    commit.write_bytes(CUTS[cut](whole))
    named = f"bronze.access: its log cannot be read: {commit.name} "
    for fails in (lambda: run_job("sessions"), lambda: lake.read("bronze.access"), lambda: come(lake, 3)):
        with pytest.raises(TableBroken, match=named):
            fails()
    assert commit.read_bytes() == CUTS[cut](whole), "nothing was written over it"
    if version == 3:  # the newest: the batch is written again
        commit.unlink()
        come(lake, 2)
        assert lake.read("bronze.access").count() == 3


def merge_rows(path: str) -> None:
    rows = pa.table({"number": pa.array([2, 9])})
    merging = DeltaTable(path).merge(rows, "s.number = t.number", source_alias="s", target_alias="t")
    merging.when_matched_update_all().when_not_matched_insert_all().execute()


COMMITS: dict[str, Callable[[str], object]] = {
    "write": lambda path: write_deltalake(path, pa.table({"number": [7]}), mode="append"),
    "overwrite": lambda path: write_deltalake(path, pa.table({"number": [7]}), mode="overwrite"),
    "merge": merge_rows,
    "delete": lambda path: DeltaTable(path).delete("number = 1"),
    "compact": lambda path: DeltaTable(path).optimize.compact(),
    "column": lambda path: DeltaTable(path).alter.add_columns([Field("name", "string")]),
    "files": lambda path: commit_files(path, NUMBERS, (), write_numbers(path)),
    "all files": lambda path: commit_files(path, NUMBERS, (), write_numbers(path), overwrite=True),
    "files of a query": lambda path: commit_files(path, NUMBERS, (), write_numbers(path), app="query", batch=0),
}
NUMBERS = StructType([StructField("number", LongType())])


def write_numbers(path: str) -> list[Written]:
    return write_files([pa.record_batch({"number": pa.array([7, 8])})], Path(path), arrow_schema(NUMBERS), ())


@pytest.mark.parametrize("kind", COMMITS)
def test_a_commit_of_any_kind_that_lost_a_line_is_not_whole(tmp_path: Path, kind: str) -> None:
    path = str(tmp_path / "table")
    for number in (1, 2):
        write_deltalake(path, pa.table({"number": [number]}), mode="append")
    COMMITS[kind](path)
    commit = tmp_path / "table/_delta_log" / f"{open_table(path).version():020}.json"
    lines = commit.read_text().splitlines()
    assert len(lines) > 1
    for count in range(1, len(lines)):
        commit.write_text("\n".join(lines[:count]))
        with pytest.raises(TableBroken, match=commit.name):
            open_table(path)


@pytest.mark.parametrize("cut, checkpoint", [(4, None), (4, 4), (4, 2), (3, 3), (2, None), (2, 2)])
@pytest.mark.parametrize("is_before_cut", [False, True])
def test_a_removal_is_named_as_a_remedy_only_where_the_table_then_takes_commits(
    tmp_path: Path, cut: int, checkpoint: int | None, is_before_cut: bool
) -> None:
    path = str(tmp_path / "table")
    for number in range(5):
        write_deltalake(path, pa.table({"number": [number]}), mode="append")
        if number == checkpoint:
            DeltaTable(path).create_checkpoint()
    log = tmp_path / "table/_delta_log"
    for number in (cut, cut - 1) if is_before_cut else (cut,):
        (log / f"{number:020}.json").write_bytes(b"")
    with pytest.raises(TableBroken) as raised:
        open_table(path)
    named = log / re.search(r"\d{20}\.json", str(raised.value))[0]
    named.unlink()
    try:
        open_table(path)
        write_deltalake(path, pa.table({"number": [9]}), mode="append")
        is_healed = open_table(path).version() > 0
    except (TableBroken, DeltaError):
        is_healed = False
    assert ("remove it" in str(raised.value)) == is_healed


def test_commits_that_change_nothing_are_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"number": [1]}))
    before = DeltaTable(path).version()
    DeltaTable(path).delete("number = 5")
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    commit_files(path, NUMBERS, (), [])
    assert open_table(path).version() > before


def test_a_commit_that_is_gone_is_named(lake: Lake) -> None:
    for number in range(3):
        come(lake, number)
    commit = Path(lake.path("bronze.access")) / "_delta_log" / f"{2:020}.json"
    commit.unlink()
    with pytest.raises(TableBroken, match=commit.name):
        lake.read("bronze.access")


@pytest.mark.parametrize("is_pointed_at", [True, False])
def test_a_newest_commit_that_is_gone_is_named_though_a_checkpoint_has_its_rows(
    lake: Lake, run_job: Runs, is_pointed_at: bool
) -> None:
    """No cleanup removes it. Its transaction, row count and appended rows could not be distinguished from those of another commit."""
    for number in range(3):
        come(lake, number)
    path = lake.path("bronze.access")
    open_table(path).create_checkpoint()
    log = Path(path, "_delta_log")
    commit = log / f"{open_table(path).version():020}.json"
    commit.unlink()
    if not is_pointed_at:
        (log / "_last_checkpoint").unlink()
    for fails in (lambda: run_job("sessions"), lambda: lake.read("bronze.access"), lambda: come(lake, 3)):
        with pytest.raises(TableBroken, match=commit.name):
            fails()


def test_commits_before_the_last_checkpoint_are_not_looked_at(lake: Lake) -> None:
    for number in range(3):
        come(lake, number)
    path = lake.path("bronze.access")
    open_table(path).create_checkpoint()
    log = Path(path, "_delta_log")
    (log / f"{2:020}.json").unlink()
    come(lake, 3)
    assert lake.read("bronze.access").count() == 4 and open_table(path, 3).version() == 3
