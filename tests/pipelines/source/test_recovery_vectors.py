"""The damaged open segments of journal/tests/recovery, which the journal wrote: the pipelines read the rows that a node recovers."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from godwit_pipelines.source.parts import Journals
from godwit_pipelines.source.rows import read_part
from godwit_pipelines.source.segments import StreamFolder
from tests.pipelines.conftest import ROOT
from tests.pipelines.test_rows import READING, each_of, without_fault

FOLDER = ROOT / "journal/tests/recovery"
VECTORS: dict[str, Any] = json.loads((FOLDER / "recovery.json").read_text("utf-8"))
WHOLE = (FOLDER / VECTORS["file"]).read_bytes()
BOOT = Path("/proc/sys/kernel/random/boot_id")


def apply(content: bytearray, edit: dict[str, dict[str, Any]]) -> None:
    """One change of a file's bytes, as journal/src/decode/vectors/mod.rs describes it."""
    ((kind, where),) = edit.items()
    if kind == "put":
        changed = bytes.fromhex(where["bytes"])
        content[where["at"] : where["at"] + len(changed)] = changed
    elif kind == "zero":
        content[where["at"] : where["end"]] = bytes(where["end"] - where["at"])
    elif kind == "cut":
        del content[where["at"] :]
    else:
        content += bytes(where["count"])


def write(data: Path, case: dict[str, Any]) -> StreamFolder:
    """The journal of one case: its damaged segment, and the file after it where there is one."""
    folder = data / "journal" / VECTORS["stream"]
    folder.mkdir(parents=True)
    content = bytearray(WHOLE)
    for edit in case["edits"]:
        apply(content, edit)
    (folder / f"{VECTORS['first']:020}.arrows").write_bytes(content)
    if case["following"] is not None:
        (folder / f"{case['following']:020}.arrows").touch()
    boot = "of another start of the machine" if case["power_cut"] else BOOT.read_text("utf-8")
    (data / "journal/boot").write_text(boot, "utf-8")
    found = StreamFolder(folder, VECTORS["stream"])
    found.look()
    return found


def read(data: Path) -> list[dict[str, Any]]:
    """The rows by their offsets; a lost one has a fault."""
    journals = Journals(str(data), VECTORS["stream"], rows_per_task=8)
    journals.look()
    parts = journals.parts(dict.fromkeys(journals.folders, VECTORS["first"]), journals.nexts())
    rows = [row for part in parts for batch in read_part(part, READING) for row in each_of(batch)]
    return sorted(rows, key=lambda row: row["journal_offset"])


def extents(offsets: list[int]) -> list[list[int]]:
    groups = itertools.groupby(enumerate(offsets), lambda pair: pair[1] - pair[0])
    return [[run[0], run[-1] + 1] for run in ([offset for _, offset in group] for _, group in groups)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, Any]]:
    """The rows of the segment before it was damaged."""
    data = tmp_path_factory.mktemp("whole")
    write(data, {"edits": [], "following": None, "power_cut": False})
    return {row["journal_offset"]: without_fault(row) for row in read(data)}


@pytest.mark.parametrize("case", VECTORS["cases"], ids=[case["name"] for case in VECTORS["cases"]])
def test_what_is_read_of_a_damaged_open_segment_is_what_a_node_recovers(
    case: dict[str, Any], tmp_path: Path, written: dict[int, dict[str, Any]]
) -> None:
    assert extents(sorted(written)) == [[VECTORS["first"], VECTORS["next"]]]
    folder = write(tmp_path, case)
    rows = read(tmp_path) if folder.next > VECTORS["first"] else []
    sound = [row for row in rows if row["fault"] is None]
    assert extents([row["journal_offset"] for row in sound]) == case["rows"]
    for row in sound:
        assert without_fault(row) == written[row["journal_offset"]]
    assert folder.open[0].rows_next == case["end"]
    if case["following"] is not None:
        return  # only of the last file a tail is named
    is_whole = not folder.open[0].batches or folder.open[0].batches[-1].is_whole
    # A frame whose last rows are damaged is named whole: the pipelines look at it again.
    assert folder.tail_bytes == case["tail_bytes"] if is_whole else folder.tail_bytes > case["tail_bytes"]
