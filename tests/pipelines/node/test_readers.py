"""Other programs read the journal: the examples of its page, with polars, pyarrow and DuckDB, on the files of a killed node."""

from __future__ import annotations

import json
import re
import textwrap
import urllib.request
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.pipelines.conftest import ROOT
from tests.pipelines.node.serving import node_process


def publish(url: str, first: int) -> None:
    """A hundred messages; answered when they are on the disk."""
    body = [{"publish": f"/rooms/{n % 7}", "content": {"n": n}, "ack": "disk"} for n in range(first, first + 100)]
    asked = urllib.request.Request(
        f"{url}/v1/messages", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert all(each.get("ok") == "published" for each in json.load(answer))


def has_room(folder: Path) -> bool:
    """Whether zeros that were made ahead stand behind the rows of the open segment."""
    opened = sorted(folder.glob("*.arrows"))
    try:
        return bool(opened) and opened[-1].read_bytes().endswith(bytes(64))
    except FileNotFoundError:  # sealed in this moment
        return False


def take_code(page: str, opening: str) -> str:
    """The lines of code behind the sentence that opens with these words."""
    (code,) = re.findall(rf"^{opening}.*\n\n((?: {{4}}.*\n|\n)+)", page, re.MULTILINE)
    return textwrap.dedent(code)


def test_polars_and_duckdb_read_what_a_killed_node_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, count = tmp_path / "data/journal/messages", 0
    with node_process(tmp_path, "--set", "journal.segment_bytes_max=262144") as (url, process):
        while not (list(folder.glob("*.arrow")) and has_room(folder)):
            publish(url, count)
            count += 100
        process.kill()
        process.wait()
    page = (ROOT / "docs/reference/journal.md").read_text("utf-8")
    code = take_code(page, "In Python, ")
    assert code.index('*.arrows"') < code.index('*.arrow"'), "what is sealed between the two is in the second"
    found: dict[str, Any] = {}
    exec(code.replace("DIR", str(tmp_path / "data")), found)
    rows = found["messages"].filter(found["polars"].col("subject").str.starts_with("/rooms/"))
    assert sorted(json.loads(content)["n"] for content in rows["content"]) == list(range(count))
    assert "/rooms/6" in capsys.readouterr().out
    check_duckdb(folder, take_code(page, "DuckDB opens no Arrow file "), count, capsys)


def check_duckdb(folder: Path, code: str, count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """It is given the files themselves, mapped by pyarrow: what it reads are their pages, and no copy."""
    with pytest.raises(duckdb.Error):
        duckdb.sql(f"SELECT * FROM '{sorted(folder.glob('*.arrow'))[0]}'")
    found: dict[str, Any] = {}
    allocated = pa.total_allocated_bytes()
    exec(code.replace("DIR/journal/messages", str(folder)), found)
    assert pa.total_allocated_bytes() - allocated < found["messages"].nbytes // 2, "mapped, not read into memory"
    assert "/rooms/6" in capsys.readouterr().out
    messages = found["messages"]
    rows = duckdb.sql(
        "SELECT DISTINCT \"journal_offset\", content FROM messages WHERE subject LIKE '/rooms/%'"
    ).fetchall()
    assert messages.num_rows >= len(rows)
    assert sorted(json.loads(content)["n"] for _, content in rows) == list(range(count))
