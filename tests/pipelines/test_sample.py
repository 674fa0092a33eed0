"""The files that the journal itself wrote (journal/tests/sample) are read as they are, by pyarrow alone and by the source.

Checks that the Rust writer's files match events.toml: names, types, and a checksum that other code computes.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from godwit_pipelines.source.columns import stream_schema
from godwit_pipelines.source.segments import StreamFolder
from tests.pipelines.journals import checksum

SAMPLE = Path(__file__).resolve().parents[2] / "journal/tests/sample"
STREAMS = ("messages", "access", "deliveries", "latency", "stats", "runs")


def read_files(stream: str) -> Iterator[pa.Table]:
    for path in sorted((SAMPLE / stream).glob("*.arrow*")):
        with pa.memory_map(str(path)) as mapped:
            if path.suffix == ".arrow":
                yield pa.ipc.open_file(mapped).read_all()
            else:
                yield pa.ipc.open_stream(mapped).read_all()


@pytest.mark.parametrize("stream", STREAMS)
def test_pyarrow_reads_sealed_and_open_segments_as_they_are(stream: str) -> None:
    sealed, opened = read_files(stream)
    rows = pa.concat_tables([sealed, opened]).to_pylist()
    assert [row["journal_offset"] for row in rows] == list(range(len(rows))) and rows
    assert {row["run"] for row in sealed.to_pylist()} == {"a1"} and {row["run"] for row in opened.to_pylist()} == {"a2"}


@pytest.mark.parametrize("stream", STREAMS)
def test_every_row_has_the_fields_and_the_checksum_that_events_toml_lays_down(stream: str) -> None:
    for table in read_files(stream):
        assert table.schema.names == stream_schema(stream).names
        types = [str(kind).replace(" not null", "") for kind in table.schema.types]  # of a list's elements
        assert types == [str(kind) for kind in stream_schema(stream).types]
        assert all(checksum(row, table.schema) == row["crc"] for row in table.to_pylist())


@pytest.mark.parametrize("stream", STREAMS)
def test_the_manifest_and_the_open_segment_follow_each_other(stream: str) -> None:
    folder = StreamFolder(SAMPLE / stream, stream)
    folder.look()
    assert (folder.first, len(folder.sealed), len(folder.open), folder.node) == (0, 1, 1, "n1")
    assert folder.next == sum(table.num_rows for table in read_files(stream))


@pytest.mark.parametrize("room", [8, 4096, 1 << 20])
def test_zeros_behind_the_rows_of_an_open_segment_end_it(room: int, tmp_path: Path) -> None:
    rows = [table.num_rows for table in read_files("messages")]
    for path in (SAMPLE / "messages").iterdir():
        content = path.read_bytes()
        (tmp_path / path.name).write_bytes(content + bytes(room) if path.suffix == ".arrows" else content)
    opened = max(tmp_path.glob("*.arrows"))
    with pa.memory_map(str(opened)) as mapped:
        assert pa.ipc.open_stream(mapped).read_all().num_rows == rows[1]
    folder = StreamFolder(tmp_path, "messages")
    folder.look()
    assert folder.next == sum(rows) and not folder.tail_bytes
    # The next batches overwrite the zeros: what was looked through already is gone on from.
    whole, batches = opened.read_bytes(), list(folder.open[0].batches)
    half = batches[4].end
    opened.write_bytes(whole[:half] + bytes(len(whole) - half))
    folder = StreamFolder(tmp_path, "messages")
    folder.look()
    assert folder.open[0].batches == batches[:5] and not folder.tail_bytes
    opened.write_bytes(whole)
    folder.open[0].look()
    assert folder.open[0].batches == batches
