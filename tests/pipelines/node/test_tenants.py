"""Whose rows they are, and the node's own figures, from a token's claim to the tables: nothing of it is made up on the way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
import urllib.request
from pathlib import Path

import pytest

from godwit_pipelines.lake import Lake
from godwit_pipelines.publish.commands import command_of
from godwit_pipelines.publish.rest import Node
from godwit_pipelines.transforms.capacity import INDICATORS
from tests.pipelines.conftest import Runs
from tests.pipelines.node.serving import START_S, running_node

pytestmark = pytest.mark.long
SECRET = b"a secret of the test's own, long enough"
ISSUER = "https://issuer.example"
COUNT = 40


def token_of(tenant: str) -> str:
    """A token (JWT, HS256) of a tenant's own user, who may do everything."""
    claims: dict[str, object] = {"iss": ISSUER, "sub": f"user of {tenant}", "org": tenant, "exp": time.time() + 600}
    claims["permissions"] = {"allow": {"both": ["/**"]}}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "HS256"}, claims)]
    sealed = base64.urlsafe_b64encode(hmac.digest(SECRET, b".".join(parts), hashlib.sha256)).rstrip(b"=")
    return b".".join([*parts, sealed]).decode()


def settings_of(folder: Path) -> list[str]:
    """The node's settings: it takes such tokens, and writes its figures down each second."""
    (folder / "secret").write_bytes(SECRET)
    text = f"""
[access]
mode = "jwt"

[issuers."{ISSUER}"]
keys_file = "{folder / "secret"}"
algorithms = ["HS256"]
tenant_claim = "org"

[journal]
flush_interval_ms = 100
statistics_interval_ms = 1000
"""
    (folder / "node.toml").write_text(text)
    return ["--config", str(folder / "node.toml")]


def test_a_tenant_and_the_statistics_reach_the_tables(tmp_path: Path, lake: Lake, run_job: Runs) -> None:
    (tmp_path / "run").mkdir()
    data = tmp_path / "node-1"
    data.symlink_to(tmp_path / "run" / "data")
    with running_node(tmp_path / "run", *settings_of(tmp_path)) as url:
        for tenant in ("blue", "red"):
            node = Node(url, token_of(tenant))
            node.send(
                [
                    command_of({"subject": f"/of/{tenant}", "content": str(n)}, f"{tenant}-{n:020}", "disk")
                    for n in range(COUNT)
                ]
            )
            node.close()
        asked = f"{url}/v1/messages?subject=/of/red&last=1000"
        reading = urllib.request.Request(asked, headers={"Authorization": f"Bearer {token_of('blue')}"})
        with urllib.request.urlopen(reading, timeout=30) as answer:
            assert len(json.load(answer)) == COUNT
        deadline = time.monotonic() + START_S
        while not list(data.glob("journal/stats/*.arrow*")) and time.monotonic() < deadline:
            time.sleep(0.1)  # written by interval; the journal has no way to tell a reader
    run_job("land")
    run_job("usage")
    used = {row.tenant: row for row in lake.read("gold.usage_1h").collect()}
    assert [used[tenant].in_messages for tenant in ("blue", "red")] == [COUNT, COUNT]
    assert [used[tenant].out_messages for tenant in ("blue", "red")] == [COUNT, 0], "who reads uses what is sent"
    assert used["blue"].connects >= 1
    figures = lake.read("bronze.stats").filter("scope = 'node' and window_name = 'now'")
    written = {row.metric for row in figures.select("metric").distinct().collect()}
    assert set(INDICATORS.values()) <= written, "what a node costs is fitted to figures that it has"
    claims = run_job("capacity")
    assert "1 node fitted" in claims.text
