"""Every bit of what describes rows: the pipelines read at least the rows that a node recovers, each as it was written."""

from __future__ import annotations

import json
import random
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipelines.conftest import ROOT
from tests.pipelines.journals import JournalWriter, message
from tests.pipelines.source.test_recovery import batches_of, read
from tests.pipelines.test_rows import without_fault

_CHECK = """
import json, sys
from pathlib import Path
from godwit import _engine
file, journal, flips = Path(sys.argv[1]), sys.argv[2], json.load(sys.stdin)
whole = file.read_bytes()
for at, bit in flips:
    content = bytearray(whole)
    content[at] ^= 1 << bit
    file.write_bytes(content)
    found = [dict(each) for each in _engine.check_journal(journal) if each["stream"] == "messages"]
    print(sum(each["rows"] for each in found), max((each["next"] for each in found), default=0))
file.write_bytes(whole)
"""


def described(content: bytes, batches: list[tuple[int, int, int]], magic: int) -> Iterator[int]:
    """The bytes of the schema, of the second batch's description and of what stands behind the last one."""
    start = batches[1][0] + magic
    yield from range(batches[0][0] + magic)
    yield from range(start, start + 8 + struct.unpack_from("<I", content, start + 4)[0])
    yield from range(batches[-1][1] + magic, len(content))


@pytest.mark.parametrize("count", [150, pytest.param(0, marks=pytest.mark.long)])
@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_flipped_bit_of_a_description_loses_nothing_that_a_node_recovers(
    tmp_path: Path, is_sealed: bool, count: int
) -> None:
    writer, rows = JournalWriter(tmp_path), 15
    for first, next in ((0, 4), (4, 10), (10, rows)):
        writer.write([message(offset) for offset in range(first, next)])
    file = writer.folder / f"{0:020}.arrows"
    batches = batches_of(file)
    file = writer.seal() if is_sealed else file
    writer.close()
    true = {row["journal_offset"]: without_fault(row) for row in read(tmp_path)}
    whole = file.read_bytes()
    flips = [(at, bit) for at in described(whole, batches, 8 if is_sealed else 0) for bit in range(8)]
    seed = random.SystemRandom().randrange(1 << 32)
    flips = random.Random(seed).sample(flips, count) if count else flips
    command = [str(ROOT / ".venv/bin/python"), "-c", _CHECK, str(file), str(tmp_path / "journal")]
    done = subprocess.run(command, input=json.dumps(flips), check=True, capture_output=True, text=True, timeout=900)
    for (at, bit), answer in zip(flips, done.stdout.splitlines(), strict=True):
        content = bytearray(whole)
        content[at] ^= 1 << bit
        file.write_bytes(content)
        recovered, end = map(int, answer.split())
        found = read(tmp_path)
        sound = [row for row in found if row["fault"] is None]
        harm = f"seed {seed}: bit {bit} of byte {at}"
        assert len(sound) >= recovered and len(found) >= end, harm
        assert all(without_fault(row) == true[row["journal_offset"]] for row in sound), harm


def test_a_schema_with_the_checksum_alone_has_no_sound_row(tmp_path: Path) -> None:
    """Which a flipped bit of a footer makes of a sound one: the node is then named by the manifest, not by a row."""
    writer = JournalWriter(tmp_path)
    writer.write([message(offset) for offset in range(5)])
    file = writer.seal()
    content = file.read_bytes()
    fields = content.rindex(struct.pack("<I", len(writer.schema)), 0, len(content) - 10)
    for count in range(len(writer.schema)):
        file.write_bytes(content[:fields] + struct.pack("<I", count) + content[fields + 4 :])
        assert [row["journal_offset"] for row in read(tmp_path) if not row["fault"]] == list(range(5))
