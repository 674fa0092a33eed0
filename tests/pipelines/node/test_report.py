"""A new user's way: a node of one's own, its journal landed and audited by the command, the report of it; and the same on a cluster."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path

import pytest

from godwit_pipelines.cluster import running_cluster
from godwit_pipelines.publish.commands import bodies_of, command_of, key_of
from godwit_pipelines.publish.rest import Node
from tests.pipelines.driven import kill, run, start
from tests.pipelines.node.serving import START_S, running_node

COUNT, WAIT_S = 2_000, 240


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a node that handed everything to one client."""
    folder = tmp_path_factory.mktemp("served")
    with (
        running_node(folder) as url,
        urllib.request.urlopen(f"{url}/v1/stream?subject=/rooms/**", timeout=30) as stream,
    ):
        node = Node(url)
        rows = [{"subject": f"/rooms/{index % 7}", "content": str(index), "kind": "json"} for index in range(COUNT)]
        for body in bodies_of([command_of(row, key_of("report", 0, 0, at), "") for at, row in enumerate(rows)], 200):
            node.send(body)
        node.close()
        deadline, heard = time.monotonic() + START_S, 0
        while heard < COUNT and time.monotonic() < deadline:
            heard += b'"message":"/rooms/' in stream.readline()
        assert heard == COUNT
    return folder / "data"


@pytest.mark.long
def test_the_report_of_a_node_of_ones_own_is_two_commands(served: Path, tmp_path: Path) -> None:
    lake, page, data, log = (tmp_path / name for name in ("lake", "report.html", "report.json", "log"))
    assert run("run", "all", "--once", "--journal", str(served), "--lake", str(lake), log=log) == 0, log.read_text()
    assert f"audit: PROVEN: {COUNT:,} messages" in log.read_text()
    words = ("report", "--lake", str(lake), "--page", str(page), "--json", str(data))
    assert run(*words, log=log) == 0, log.read_text()
    assert "PROVEN" in page.read_text() and json.loads(data.read_text())["audit"]["state"] == "proven"


@pytest.mark.long
def test_a_cluster_that_loses_a_worker_finds_the_same(served: Path, tmp_path: Path) -> None:
    lake, log = tmp_path / "lake", tmp_path / "log"
    with running_cluster(tmp_path / "cluster", workers=2, memory="1g") as cluster:
        words = ("--lake", str(lake), "--master", cluster.url, "--set", "spark.executor_memory=512m", "--once")
        assert run("run", "land", *words, "--journal", str(served), log=log) == 0, log.read_text()
        process = start("run", "audit", *words, log=log)
        try:
            deadline = time.monotonic() + WAIT_S
            while not (lake / "gold" / "audit_faults").exists() and time.monotonic() < deadline:
                time.sleep(0.02)  # the first of its three tables
            assert process.poll() is None, log.read_text()
            kill(cluster.workers[0])
            assert process.wait(WAIT_S) == 0, log.read_text()
        finally:
            kill(process)
    assert f"PROVEN: {COUNT:,} messages" in log.read_text()
