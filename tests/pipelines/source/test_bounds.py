"""A condition leaves out files that have no row of it, and never a row: also where two readers meet in one query."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from godwit_pipelines.lake import Lake
from godwit_pipelines.source.extents.bounds import find_bounds, parts_within, read_bounds
from godwit_pipelines.source.parts import Journals
from tests.pipelines.journals import START, write_messages

ROWS = 400
MOMENT = (START + timedelta(milliseconds=250)).strftime("%Y-%m-%d %H:%M:%S.%f")
CONDITIONS = {
    "`journal_offset` < 120": 2,
    "120 > journal_offset AND subject = '/rooms/3'": 2,
    "journal_offset >= 399": 1,
    "JOURNAL_OFFSET = 7": 1,
    "journal_offset > 7 AND journal_offset <= 7": 0,
    "arrival >= 200 AND arrival < 300": 2,
    f"time >= timestamp '{MOMENT}'": 2,
    "node = 'node-b'": 0,
    "node > 'a' AND node = 'node-a'": 4,
    "journal_offset < 120 OR journal_offset > 380": 4,
    "NOT (journal_offset < 120)": 4,
    "journal_offset + 1 < 120": 4,
    "subject = '/rooms/3'": 4,
    "journal_offset < 1.5": 4,
    "journal_offset < '120'": 4,
}


@pytest.mark.parametrize(("where", "files"), CONDITIONS.items())
def test_files_are_left_out_and_rows_are_not(
    tmp_path: Path, lake: Lake, spark: SparkSession, where: str, files: int
) -> None:
    write_messages(tmp_path / "node-1", ROWS)
    every = lake.journal("messages")
    expected = sorted(row["journal_offset"] for row in every.where(where).collect())
    assert sorted(row["journal_offset"] for row in lake.journal("messages", where).collect()) == expected
    journals = Journals(str(tmp_path / "node-1"), "messages")
    journals.look()
    assert len({part.file for part in parts_within(journals, read_bounds(find_bounds(spark, where)))}) == files


def test_conditions_of_two_readers_in_one_query_stay_apart(tmp_path: Path, lake: Lake) -> None:
    write_messages(tmp_path / "node-1", ROWS)
    first, second = lake.journal("messages", "journal_offset < 10"), lake.journal("messages", "journal_offset >= 390")
    both = sorted(row["journal_offset"] for row in first.union(second).collect())
    assert both == [*range(10), *range(390, 400)]
    assert first.join(second, "subject").count() == 10
    with pytest.raises(ParseException):
        lake.journal("messages", "journal_offset <").collect()
