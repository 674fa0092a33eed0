"""The JavaScript client's own tests in Deno and Bun: those that start no process, and the client against a real node.

Node runs all of them: `make test-javascript`. One file is left out in Deno: its tests move the clock, which there also fires the
time limits of the tests.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.browser.test_bundles import programs

__all__ = ["programs"]

CLIENT = ROOT / "clients/javascript"
FOLDERS = ("codec", "conformance", "position_store", "session", "shell", "transport")
WITH_A_NODE = ("integration/client.test.js", "integration/close.test.js")
DEADLINE_S = 600


def files(runtime: str) -> list[str]:
    alone = [path for folder in FOLDERS for path in sorted((CLIENT / "tests" / folder).glob("*.test.js"))]
    chosen = [*alone, *(CLIENT / "tests" / name for name in WITH_A_NODE)]
    return [str(path.relative_to(CLIENT)) for path in chosen if (runtime, path.name) != ("deno", "returning.test.js")]


@pytest.mark.long
@pytest.mark.parametrize("runtime", ["deno", "bun"])
async def test_the_clients_tests_pass(runtime: str, programs: Path) -> None:
    words: dict[str, list[str | Path]] = {
        "deno": [programs / "deno", "test", "--quiet", "--no-check", "--allow-all", "--node-modules-dir=manual"],
        "bun": [programs / "bun", "test", "--timeout", "120000"],
    }
    failed = {}
    for name in files(runtime):
        process = await asyncio.create_subprocess_exec(
            *words[runtime],
            f"./{name}",
            cwd=CLIENT,
            stdout=PIPE,
            stderr=STDOUT,
            env=os.environ | {"GODWIT_PYTHON": sys.executable},
        )
        output, _ = await asyncio.wait_for(process.communicate(), DEADLINE_S)
        if process.returncode != 0:
            failed[name] = output.decode()[-4_000:]
    assert failed == {}
