"""The clients under every version of Python and Node that they support: a program against a real node, and their own suite.

Each version is fetched from its package registry, or found on this machine. One that cannot be had is skipped, by name.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.node_process import running_node

ROOT = Path(__file__).parents[2]
DEADLINE_S = 400
PROGRAM = """
import asyncio, gc, sys
from godwit.client import Client, PositionFile

async def serve(client):
    async for request in client.subscribe("/double", snapshot=False):
        await client.reply(request, 2 * request.json())

async def main(url, path):
    asyncio.get_running_loop().slow_callback_duration = float("inf")  # how busy this machine is, is no fault of the client
    for encoding in ("json", "binary"):
        async with Client(url, encoding=encoding, positions=PositionFile(path)) as client, asyncio.timeout(60):
            every = client.subscribe(f"/{encoding}/*", snapshot=False)
            await every.joined()
            answering = asyncio.create_task(serve(client))
            await client.connected()
            for number in range(100):
                await client.publish(f"/{encoding}/{number % 7}", number)
            assert sorted([(await anext(every)).json() for _ in range(100)]) == [*range(100)]
            try:  # a wait that is cancelled takes nothing from the queue
                await asyncio.wait_for(anext(every), 0.01)
            except TimeoutError:
                pass
            await client.publish(f"/{encoding}/last", 7)
            assert (await anext(every)).json() == 7
            assert (await client.request("/double", 21)).json() == 42
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
    for _ in range(20):  # closed before it is connected
        async with Client(url):
            pass
    gc.collect()

hidden = []
sys.unraisablehook = lambda caught: hidden.append(caught.exc_value)
if sys.argv[3] == "uvloop":
    import uvloop
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1], sys.argv[2]))
else:
    asyncio.run(main(sys.argv[1], sys.argv[2]))
gc.collect()
assert not hidden, hidden
"""


def run(
    *command: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, cwd=cwd, env=env)


def find_python(name: str, folder: Path) -> Path:
    """An environment of that version with what the client needs; skips where there is none."""
    uv = Path(sys.executable).with_name("uv")
    kept = [*Path.home().glob(f".pyenv/versions/{name}.*/bin/python")]
    made = run(uv, "venv", "--quiet", "--python", kept[-1] if kept else name, folder)
    if made.returncode:
        pytest.skip(f"Python {name} is not here and cannot be fetched: {made.stderr.strip().splitlines()[0]}")
    python = folder / "bin/python"
    wanted = (*(f"{each}=={version(each)}" for each in ("websockets", "msgspec")), "uvloop")
    installed = run(uv, "pip", "install", "--quiet", "--python", python, *wanted)
    if installed.returncode:
        pytest.skip(f"what the client needs cannot be had for Python {name}: {installed.stderr.strip()[-200:]}")
    return python


@pytest.mark.long
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("name", ["3.11", "3.12", "3.13", "3.14"])
async def test_python_client_by_each_version_of_python(name: str, loop: str, tmp_path: Path) -> None:
    python = await asyncio.to_thread(find_python, name, tmp_path / "environment")
    async with running_node() as node:
        words = ("-X", "dev", "-W", "error", "-c", PROGRAM, node.url, tmp_path / "positions", loop)
        ended = await asyncio.to_thread(run, python, *words, env={**os.environ, "PYTHONPATH": str(ROOT / "server")})
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.parametrize("major", [20, 22, 24])
async def test_javascript_client_by_each_version_of_node(major: int, tmp_path: Path) -> None:
    if not shutil.which("npm"):
        pytest.skip("npm is not here")
    fetch = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", tmp_path, f"node@{major}")
    fetched = await asyncio.to_thread(run, *fetch)
    node = tmp_path / "node_modules/node/bin/node"
    if fetched.returncode or not node.exists():
        pytest.skip(f"Node {major} cannot be fetched: {fetched.stderr.strip()[-200:]}")
    folders = ("shell", "session", "places", "transport", "faults")
    suites = sorted(path for name in folders for path in (ROOT / "clients/javascript/tests" / name).glob("*.test.js"))
    assert suites
    words = ("--expose-gc", "--test", *suites)
    environment = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}", "LONG": ""}
    ended = await asyncio.to_thread(run, node, *words, cwd=ROOT / "clients/javascript", env=environment)
    assert ended.returncode == 0, ended.stdout[-4_000:]
