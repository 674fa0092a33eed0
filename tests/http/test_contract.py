"""The OpenAPI document: the node serves it, and schemathesis finds no answer that contradicts it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.node_process import NodeProcess, running_node

CONTRACT = Path(__file__).resolve().parents[2] / "protocol/openapi.json"
QUICK = {"limits.poll_ms_max": 50}
# A stream has no end, and a document that says so is not one that can be waited for.
ENDLESS = "/v1/stream"
# What is right in a body or a place depends on which parameters come with it, which no schema can say.
UNSAID = "positive_data_acceptance"


REFUSALS = ["400", "401", "403", "404", "405", "406", "409", "413", "414", "415", "422", "429", "431", "5xx"]
"""What may answer a request that the document forbids: a line or a body may be too long before it is looked at."""


async def search(node: NodeProcess, tmp_path: Path, examples: int) -> None:
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"http://{node.host}:{node.port}/v1/openapi.json"),
        *("--max-examples", str(examples), "--exclude-path", ENDLESS, "--seed", "7", "--request-timeout", "10"),
        *(
            "--checks",
            "all",
            "--exclude-checks",
            UNSAID,
            "--no-color",
            "--generation-database",
            "none",
            "--suppress-health-check",
            "all",
        ),
    ]
    settings = f"[checks]\nnegative_data_rejection.expected-statuses = {REFUSALS}\n"
    (tmp_path / "schemathesis.toml").write_text(settings)
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


async def test_the_document_is_served_as_it_is_kept() -> None:
    async with running_node() as node:

        def read() -> bytes:
            with urllib.request.urlopen(f"http://{node.host}:{node.port}/v1/openapi.json", timeout=10) as answer:
                body: bytes = answer.read()
                return body

        assert json.loads(await asyncio.to_thread(read)) == json.loads(CONTRACT.read_text("utf-8"))


async def test_a_short_search_finds_no_answer_that_the_document_does_not_know(tmp_path: Path) -> None:
    async with running_node(QUICK) as node:
        await search(node, tmp_path, 4)


@pytest.mark.long
async def test_a_long_search_finds_none_either(tmp_path: Path) -> None:
    async with running_node(QUICK) as node:
        await search(node, tmp_path, 300)
