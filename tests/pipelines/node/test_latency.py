"""The delivery latencies that a node records, compared with a reader's clock."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.pipelines.node.serving import running_node

ROUNDS = 4


def read_latency(folder: Path) -> list[dict[str, Any]]:
    """Its rows, once the node has ended in order."""
    tables = [pa.ipc.open_file(file).read_all() for file in sorted(folder.glob("*.arrow"))]
    return [row for table in tables for row in table.to_pylist()]


def test_what_the_node_itself_publishes_takes_no_longer_than_its_readers_see(tmp_path: Path) -> None:
    seen_us = 0.0
    settings = tmp_path / "node.toml"
    settings.write_text('[patterns."/$node/**"]\njournal = true\n')  # by default nothing of it is in the journal
    with (
        running_node(tmp_path, "--config", str(settings)) as url,
        urllib.request.urlopen(f"{url}/v1/stream?subject=/$node/**", timeout=60) as response,
    ):
        times: set[int] = set()
        while len(times) < ROUNDS:  # the figures of a second each, all published at once
            line = response.readline()
            message = json.loads(line.removeprefix(b"data: ")) if line.startswith(b"data: ") else {}
            if "message" in message and not message.get("snapshot"):
                times.add(message["time"])
                seen_us += (time.time() * 1000 + 1 - message["time"]) * 1000
    rows = read_latency(tmp_path / "data/journal/latency")
    assert sum(row["count"] for row in rows) > 0
    # Bucket i holds what took 2^(i-1) microseconds and more; each is of one or more of the messages that came.
    assert sum(count * 2**at // 2 for row in rows for at, count in enumerate(row["buckets"])) <= seen_us
