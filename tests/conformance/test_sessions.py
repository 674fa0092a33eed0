"""A node answers as the scripts in protocol/vectors/sessions.json and streams.json require. The Rust core runs the same scripts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.conformance.script import Stage
from tests.node_process import NodeProcess, is_allowed, running_node

VECTORS = Path(__file__).parents[2] / "protocol/vectors"
CASES = [
    case for name in ("sessions", "streams") for case in json.loads((VECTORS / f"{name}.json").read_text())["cases"]
]
DEADLINE_S = 30


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["io_uring", "readiness"])
async def node(request: pytest.FixtureRequest) -> AsyncIterator[NodeProcess]:
    if not await is_allowed(request.param):
        pytest.skip(f"this machine allows no {request.param}")
    async with running_node({"node.driver": request.param}) as node:
        yield node
        assert await node.terminate() == 0


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
async def test_a_session_goes_as_the_script_says(node: NodeProcess, case: dict[str, Any]) -> None:
    async with asyncio.timeout(DEADLINE_S), AsyncExitStack() as clients:
        await Stage(node.url, clients).play(case["lines"])
