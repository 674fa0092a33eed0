"""Two processes on one file of positions, in both languages: killed, frozen, and side by side, one of them writes it."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import socket
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
        print("held by", error.pid, "on", error.host, flush=True)
asyncio.run(main())
"""
NODE = f"""
import {{ Client, PositionFile, PositionFileHeld }} from {json.dumps((ROOT / "clients/javascript/src/node.js").as_uri())};
const [url, path] = process.argv.slice(1);
const log = {{ info() {{}}, warn() {{}}, error() {{}} }};
const client = new Client(url, {{ log, positions: new PositionFile(path) }});
try {{
  await client.connected();
  console.log("holds");
  for await (const _ of client.subscribe("/a"));
}} catch (error) {{
  if (!(error instanceof PositionFileHeld)) throw error;
  console.log("held by", error.pid, "on", error.host);
}}
await client.close().catch(() => {{}});
"""
COMMANDS = {
    "python": [sys.executable, "-c", PYTHON],
    "node": ["node", "--input-type=module", "-e", NODE],
}


@asynccontextmanager
async def holder(
    language: str, url: str, path: Path, container: str | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that holds the file or is refused it; in a container it has process numbers and a host name of its own."""
    words = [*COMMANDS[language], url, str(path)]
    if container is not None:
        apart = ("--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts")
        words = ["unshare", *apart, "sh", "-c", f'hostname {container} && exec "$@"', "sh", *words]
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
                assert await said(other) == f"held by {one.pid} on {socket.gethostname()}"
            one.kill()
            await one.wait()
        async with holder(second, node.url, path) as frozen:  # after a kill the lease is void in a moment
            assert await said(frozen) == "holds"
            frozen.send_signal(signal.SIGSTOP)
            async with holder(first, node.url, path) as third:
                assert await said(third) == "holds"
                frozen.send_signal(signal.SIGCONT)
                assert await said(frozen) == f"held by {third.pid} on {socket.gethostname()}"


@pytest.mark.long
@pytest.mark.parametrize(("first", "second"), [("python", "node"), ("node", "python")])
async def test_two_containers_share_a_file_of_positions_where_process_numbers_mean_nothing(
    tmp_path: Path, first: str, second: str
) -> None:
    if not shutil.which("unshare"):
        pytest.skip("unshare (util-linux) is not here")
    path = tmp_path / "positions.json"
    async with asyncio.timeout(DEADLINE_S), running_node() as node:
        async with holder(first, node.url, path, "one") as one:
            if not (word := await said(one)):
                pytest.skip("this machine allows no namespaces")
            assert word == "holds"
            async with holder(second, node.url, path, "two") as other:
                assert await said(other) == "held by 1 on one"  # its own number in its container is 1 as well
            one.kill()
            await one.wait()
        async with holder(second, node.url, path, "two") as other:
            assert await said(other) == "holds"
