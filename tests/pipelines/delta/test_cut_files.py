"""Files of a table that a power cut left shorter than its log says, and a log that no longer has a version: said, never read past."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from godwit_pipelines.delta.appended import snapshot_files
from godwit_pipelines.errors import TableBroken, TableMissing
from godwit_pipelines.lake import Lake
from godwit_pipelines.progress import translate
from tests.pipelines.conftest import Runs
from tests.pipelines.journals import JournalWriter, message


def cut(file: Path, whole: bytes, size: int | None) -> None:
    file.write_bytes(whole[:size] if size is not None else whole[:9] + bytes(len(whole) - 9))


def test_a_file_that_was_cut_or_damaged_is_named_by_whoever_reads_it(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    writer = JournalWriter(tmp_path / "node-1", node="a")
    for _ in range(2):
        writer.write([message(offset) for offset in range(writer.next, writer.next + 10)])
        run_job("land", streams="messages")
    (file,) = DeltaTable(lake.path("bronze.messages"), version=1).file_uris()
    whole = Path(file).read_bytes()
    for size in (0, len(whole) - 9, None):
        cut(Path(file), whole, size)
        with pytest.raises(Exception) as found:
            lake.read("bronze.messages").agg({"journal_offset": "max"}).collect()
        assert isinstance(translate(found.value), TableBroken) and Path(file).name in str(translate(found.value))
        if size != 0:
            with pytest.raises(Exception) as raised:
                run_job("usage")
            assert isinstance(translate(raised.value), TableBroken), size
        if size is not None:
            reconciled = run_job("reconcile")
            assert reconciled.found == 1 and "messages of a: 0 to 9 MISSING" in reconciled.text
    cut(Path(file), whole, len(whole))
    assert run_job("reconcile").found == 0 and lake.read("bronze.messages").count() == 20


def test_a_version_that_a_log_no_longer_has_is_said(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    writer = JournalWriter(tmp_path / "node-1", node="a")
    for _ in range(2):
        writer.write([message(offset) for offset in range(writer.next, writer.next + 10)])
        run_job("land", streams="messages")
    path = lake.path("bronze.messages")
    DeltaTable(path).create_checkpoint()
    for version in (0, 1):
        Path(path, "_delta_log", f"{version:020}.json").unlink()
    assert [file.rows for file in snapshot_files(path, 2)] == [10, 10]
    with pytest.raises(TableMissing, match="version 1 is no longer in its log"):
        snapshot_files(path, 1)
