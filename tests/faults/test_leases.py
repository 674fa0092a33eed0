"""Two processes on one file of positions, in both languages: killed, frozen, and side by side, one of them writes it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.node_process import running_node

ROOT = Path(__file__).parents[2]
DEADLINE_S = 90
PYTHON = """
import asyncio, sys
from godwit.client import Client, PositionFile, PositionFileHeld
async def main():
    try:
        async with Client(sys.argv[1], positions=PositionFile(sys.argv[2])) as client:
            await client.connected()
            print("holds", flush=True)
            async for _ in client.subscribe("/a"): pass
    except PositionFileHeld as error:
        print("held by", error.pid, flush=True)
asyncio.run(main())
"""
NODE = f"""
import {{ Client, PositionFile, PositionFileHeld }} from {json.dumps((ROOT / "client/src/node.js").as_uri())};
const [url, path] = process.argv.slice(1);
const log = {{ info() {{}}, warn() {{}}, error() {{}} }};
const client = new Client(url, {{ log, positions: new PositionFile(path) }});
try {{
  await client.connected();
  console.log("holds");
  for await (const _ of client.subscribe("/a"));
}} catch (error) {{
  if (!(error instanceof PositionFileHeld)) throw error;
  console.log("held by", error.pid);
}}
await client.close().catch(() => {{}});
"""
COMMANDS = {
    "python": [sys.executable, "-c", PYTHON],
    "node": ["node", "--input-type=module", "-e", NODE],
}


@asynccontextmanager
async def holder(language: str, url: str, path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    words = [*COMMANDS[language], url, str(path)]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def said(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


@pytest.mark.long
@pytest.mark.parametrize(("first", "second"), [("python", "node"), ("node", "python")])
async def test_one_process_writes_a_file_of_positions(tmp_path: Path, first: str, second: str) -> None:
    path = tmp_path / "positions.json"
    async with asyncio.timeout(DEADLINE_S), running_node() as node:
        async with holder(first, node.url, path) as one:
            assert await said(one) == "holds"
            async with holder(second, node.url, path) as other:
                assert await said(other) == f"held by {one.pid}"
            one.kill()
            await one.wait()
        async with holder(second, node.url, path) as frozen:  # after a kill the lease is void in a moment
            assert await said(frozen) == "holds"
            frozen.send_signal(signal.SIGSTOP)
            async with holder(first, node.url, path) as third:
                assert await said(third) == "holds"
                frozen.send_signal(signal.SIGCONT)
                assert await said(frozen) == f"held by {third.pid}"
