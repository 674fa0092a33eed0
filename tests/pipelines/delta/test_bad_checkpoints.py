"""A checkpoint of a table's log that a power cut left cut short, empty or not at all: a sentence with a remedy that works."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from godwit_pipelines.delta.log import open_table
from godwit_pipelines.errors import TableBroken

HARMS: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:200]),
    "zeros": lambda file: file.write_bytes(bytes(file.stat().st_size)),
}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("is_cleaned", [False, True])
@pytest.mark.parametrize("has_older", [False, True])
def test_a_checkpoint_that_cannot_be_read_is_named_with_a_remedy_that_works(
    tmp_path: Path, harm: str, is_cleaned: bool, has_older: bool
) -> None:
    path, log = str(tmp_path / "table"), tmp_path / "table/_delta_log"
    for number in range(6):
        write_deltalake(path, pa.table({"number": [number]}), mode="append")
        if number == 4 or (has_older and number == 2):
            DeltaTable(path).create_checkpoint()
    checkpoint = log / f"{4:020}.checkpoint.parquet"
    HARMS[harm](checkpoint)
    if is_cleaned:
        (log / f"{3 if has_older else 0:020}.json").unlink()
    with pytest.raises(TableBroken) as raised:
        open_table(path)
    said = str(raised.value)
    assert ("put it back from a copy" if is_cleaned else "the commits hold everything that was in it") in said
    assert (
        checkpoint.name in said if harm != "gone" else " of version 4 is missing" in said or ".json is missing" in said
    )
    if not is_cleaned:
        for name in re.findall(r"\d{20}\.checkpoint\.parquet|_last_checkpoint", said):
            (log / name).unlink(missing_ok=True)
        assert sorted(open_table(path).to_pyarrow_table()["number"].to_pylist()) == [*range(6)]
        write_deltalake(path, pa.table({"number": [6]}), mode="append")
        assert open_table(path).version() == 6
