"""Others read the journal as it is: the page's own lines, with polars and DuckDB, on what a node had written when it was killed."""

from __future__ import annotations

import json
import re
import textwrap
import urllib.request
from pathlib import Path
from typing import Any

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


def test_polars_and_duckdb_read_what_a_killed_node_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, count = tmp_path / "data/journal/messages", 0
    with node_process(tmp_path, "--set", "journal.segment_bytes_max=262144") as (url, process):
        while not (list(folder.glob("*.arrow")) and has_room(folder)):
            publish(url, count)
            count += 100
        process.kill()
        process.wait()
    page = (ROOT / "docs/concepts/journal.md").read_text("utf-8")
    (code,) = re.findall(r"^In Python, .*\n\n((?: {4}.*\n|\n)+)", page, re.MULTILINE)
    assert code.index('*.arrows"') < code.index('*.arrow"'), "what is sealed between the two is in the second"
    found: dict[str, Any] = {}
    exec(textwrap.dedent(code).replace("DIR", str(tmp_path / "data")), found)
    rows = found["messages"].filter(found["polars"].col("subject").str.starts_with("/rooms/"))
    assert sorted(json.loads(content)["n"] for content in rows["content"]) == list(range(count))
    assert "/rooms/6" in capsys.readouterr().out
