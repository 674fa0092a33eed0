"""The admin port keeps to its own document: schemathesis asks everything it says, and much that it does not, of a real node."""

import asyncio
import sys
from pathlib import Path

import pytest

from godwit import testing
from godwit.admin.openapi.document import OPERATIONS
from godwit.client import Client
from godwit.engine import Draft

TOKEN = "an-admin-token-of-a-test"
# What JSON Schema cannot say: subjects are bounded in bytes, connections' numbers by 64 bits, a revocation by its verb.
NOT_CHECKED = "positive_data_acceptance"


@pytest.mark.parametrize(
    "phases, examples",
    [("coverage", 1), pytest.param("examples,coverage,fuzzing,stateful", 60, marks=pytest.mark.long)],
)
async def test_every_answer_is_one_that_the_document_allows(phases: str, examples: int, tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "schemathesis"
    settings = {"admin": {"token": TOKEN}}
    async with testing.node(settings) as node, Client(node.url) as client, client.subscribe("/a/**") as listening:
        await listening.joined()
        node.node.engine.publish_many([Draft(f"/a/{number}", b"1") for number in range(200)])
        run = await asyncio.create_subprocess_exec(
            *(program, "run", f"{node.admin_url}/openapi.json", "--phases", phases, "-n", str(examples)),
            *("-H", f"Authorization: Bearer {TOKEN}", "--exclude-checks", NOT_CHECKED, "--no-color", "--seed", "1"),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await run.communicate()
    assert run.returncode == 0, said.decode()[-8_000:]
    asked = [
        operation for operation in OPERATIONS if operation.path != "/openapi.json"
    ]  # that it has read to begin with
    assert f"Tested: {len(asked)}" in said.decode()
