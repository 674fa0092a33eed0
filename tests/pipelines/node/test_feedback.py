"""The journal of dispatch lands like a node's: what became of deliveries is in the tables, once."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path

import pytest

from godwit_pipelines.lake import Lake
from tests.pipelines.conftest import Runs
from tests.pipelines.node.serving import START_S, node_at

pytestmark = pytest.mark.long


def call(url: str, key: str, method: str, path: str, body: object = None) -> dict[str, object]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Authorization": f"Bearer {key}"}, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        reply: dict[str, object] = json.loads(answer.read() or b"{}")
        return reply


def test_what_dispatch_wrote_down_lands_once(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "node-1").symlink_to(tmp_path / "run" / "data" / "dispatch")
    settings = ("dispatch.address=127.0.0.1:0", "dispatch.feedback_journal=true", "node.name=shop")
    words = [word for setting in settings for word in ("--set", setting)]
    with node_at(tmp_path / "run", "--dispatch", *words) as (addresses, _):
        url = f"http://{addresses['dispatch']}"
        key = (tmp_path / "run/data/dispatch/admin.key").read_text("ascii")
        body = {"to": {"receiver": {"id": "ann"}}, "content": {"title": "hi"}, "category": "news"}
        for name in ("n1", "n2"):
            call(url, key, "PUT", f"/v1/notifications/{name}", body)
            until = time.monotonic() + START_S
            while call(url, key, "GET", f"/v1/notifications/{name}")["state"] != "settled":
                assert time.monotonic() < until
    run_job("land")
    run_job("land")
    columns = ("node", "tenant", "notification", "receiver", "channel", "state", "category", "possible_duplicate")
    rows = lake.read("bronze.feedback").orderBy("journal_offset").select(*columns).collect()
    expected = [("shop-dispatch", "default", name, "ann", "inbox", "sent", "news", False) for name in ("n1", "n2")]
    assert [tuple(row) for row in rows] == expected
    assert lake.read("bronze.quarantine").count() == 0
    assert "MISSING" not in run_job("reconcile").text
