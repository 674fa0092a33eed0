"""A node that starts with more in its journal than its settings keep deletes the oldest segments, and serves the rest."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path

import pytest

from tests.pipelines.node.serving import node_process
from tests.pipelines.node.test_journal_visible import publish

BYTES_MAX = 2 << 20
WAIT_S = 60


@pytest.mark.long
def test_a_start_with_smaller_bounds_lets_go_of_the_oldest_segments(tmp_path: Path) -> None:
    folder = tmp_path / "data/journal/messages"
    content = "x" * 1000
    with node_process(tmp_path, "--set", "journal.segment_bytes_max=1048576") as (url, _):
        for _ in range(40):
            publish(url, *(("/a/b", content) for _ in range(200)))
    before = sorted(folder.glob("*.arrow"))
    assert sum(file.stat().st_size for file in before) > 2 * BYTES_MAX
    with node_process(tmp_path, "--set", f"journal.messages_bytes_max={BYTES_MAX}") as (url, _):
        until = time.monotonic() + WAIT_S
        while (size := sum(file.stat().st_size for file in folder.glob("*.arrow"))) > BYTES_MAX:
            assert time.monotonic() < until, f"{size} bytes are kept"
            time.sleep(0.1)  # files have no way to tell that they are gone
        left = sorted(folder.glob("*.arrow"))
        assert left and left == before[-len(left) :], "the oldest go"
        (place,) = publish(url, ("/a/b", content))
        with urllib.request.urlopen(f"{url}/v1/messages?subject=/a/b&last=1", timeout=WAIT_S) as answer:
            assert [row["at"] for row in json.load(answer) if "message" in row] == [place]
