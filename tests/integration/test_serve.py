"""`godwit serve` as a program: its line, its signals, its exit codes, its log. Drains under load are in tests/faults."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from websockets.asyncio.client import connect

from godwit.client import Client
from godwit.codes import Code
from godwit.errors import GodwitError, SessionClosed
from tests.node_process import NodeProcess, running_node

DEADLINE_S = 30
START_CPU_S_MAX = 1.5  # "again in under 3 s", without what else the machine does meanwhile


async def run(*words: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "godwit", *words), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(DEADLINE_S):
        output, errors = await process.communicate()
    return process.returncode or 0, output.decode(), errors.decode()


async def test_it_listens_soon_and_what_it_says_is_true() -> None:
    async with running_node() as node:
        assert node.cpu_seconds() < START_CPU_S_MAX
        async with Client(node.url) as client:
            assert (await client.publish("/a", 1)).position is not None
        async with aiohttp.ClientSession() as http, http.get(f"{node.admin_url}/health/ready") as answer:
            assert answer.status == 200
        assert await node.terminate() == 0


async def test_a_taken_port_exits_3_and_says_which() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for listener in ("client", "mqtt", "admin"):
            free = {name: "127.0.0.1:0" for name in ("client", "mqtt", "admin")}
            words = [word for name, port in {**free, listener: address}.items() for word in (f"--{name}", port)]
            code, output, errors = await run("serve", *words)
            assert (code, output) == (3, "")
            assert f"cannot listen for {listener} on {address}" in errors


async def test_a_wrong_file_exits_2_before_a_port_opens(tmp_path: Path) -> None:
    file = tmp_path / "godwit.toml"
    file.write_text('[access]\nmode = "basic"\npublish_tokens_file = "/does/not/exist"\n')
    code, output, errors = await run("serve", "--config", str(file), "--client", "127.0.0.1:0")
    assert (code, output) == (2, "") and "access.publish_tokens_file" in errors and "node_started" not in errors


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "--data: '' is empty; name a directory"),
        (b"a\xff", "Invalid value for '--data': 'a\\udcff' is not valid UTF-8"),
    ],
)
def test_a_data_directory_without_a_name_is_refused_and_none_made(tmp_path: Path, data: bytes, said: str) -> None:
    ports = ("--client", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    command = (sys.executable, "-m", "godwit", "serve", "--data", data, *ports)
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout) == (2, b"") and said in ended.stderr.decode(), ended.stderr
    assert not list(tmp_path.iterdir())


async def test_a_second_signal_cuts_the_drain_short() -> None:
    slow = {"drain.spread_ms": 60_000, "drain.grace_ms": 60_000}
    async with running_node(slow, log=asyncio.subprocess.PIPE) as node, connect(f"{node.url}/v1/live") as client:
        await client.send('{"id":1,"subscribe":"/a"}')
        await client.recv()
        node.process.send_signal(signal.SIGINT)
        assert node.process.stderr is not None
        async with asyncio.timeout(DEADLINE_S):
            while b"drain_began" not in await node.process.stderr.readline():
                pass
            assert await node.terminate() == 1


async def test_every_line_of_its_log_is_one_json_event_without_a_token(tmp_path: Path) -> None:
    token = "correct-horse-battery-staple"
    file = tmp_path / "tokens"
    file.write_text(token)
    settings = {"access.mode": "basic", "access.publish_tokens_file": file, "logging.sessions": "true"}
    async with running_node(settings, log=asyncio.subprocess.PIPE) as node:
        async with Client(node.url, token=token) as client:
            await client.publish("/a", 1)
        async with Client(node.url, token=token + "x") as client:
            with pytest.raises(GodwitError):
                await client.publish("/a", 1)
        assert await node.terminate() == 0
        assert node.process.stderr is not None
        lines = (await node.process.stderr.read()).decode().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    assert {"node_started", "session_connected", "drain_began", "node_stopped"} <= set(events)
    assert token not in "\n".join(lines)


async def test_the_demonstration_is_there_at_once() -> None:
    async with running_node({"demo.enabled": "true"}) as node:
        async with Client(node.url) as client, asyncio.timeout(DEADLINE_S):
            async for message in client.subscribe("/host/**"):
                if re.fullmatch(r"/host/[^/]+/cpu", message.subject):
                    assert 0 <= message.json()["percent"] <= 100
                    break
        assert node.process.stdout is not None
        assert f"{node.admin_url}/".encode() in await node.process.stdout.readline()


async def test_a_hangup_reads_the_configuration_again_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    first, second = "correct-horse-battery-staple", "another-token-of-length"
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{first}\n{second}\n")
    settings = {"access.mode": "basic", "access.publish_tokens_file": tokens}

    async def hang_up(node: NodeProcess) -> dict[str, Any]:
        node.process.send_signal(signal.SIGHUP)
        assert node.process.stderr is not None
        while True:
            event: dict[str, Any] = json.loads(await node.process.stderr.readline())
            if event["event"].startswith("config_"):
                return event

    async with (
        asyncio.timeout(DEADLINE_S),
        running_node(settings, log=asyncio.subprocess.PIPE) as node,
        Client(node.url, token=first) as going,
        Client(node.url, token=second) as staying,
    ):
        for client in (going, staying):
            await client.publish("/a", 1)
        for broken in ("", "short\n"):
            tokens.write_text(broken)
            assert (await hang_up(node))["event"] == "config_not_reloaded"
            await going.publish("/a", 2)
        tokens.write_text(f"{second}\n")
        event = await hang_up(node)
        assert (event["event"], event["tokens_gone"]) == ("config_reloaded", 1)
        with pytest.raises(SessionClosed, check=lambda error: error.code == Code.TOKEN_INVALID):
            await going.publish("/a", 3)
        await staying.publish("/a", 4)
        assert await node.terminate() == 0


async def test_a_reload_by_the_api_changes_the_level_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "godwit.toml"
    file.write_text('[logging]\nlevel = "info"\n')
    monkeypatch.setenv("GODWIT_CONFIG", str(file))
    token = "0123456789abcdef0123"
    settings = {"logging.format": "json", "admin.token": token}
    async with (
        running_node(settings, log=asyncio.subprocess.PIPE) as node,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http,
    ):
        for level in ("error", "error", "info"):
            file.write_text(f'[logging]\nlevel = "{level}"\n')
            async with http.post(f"{node.admin_url}/v1/reload") as answer:
                assert answer.status == 200, await answer.text()
        assert await node.terminate() == 0
        assert node.process.stderr is not None
        events = [json.loads(line)["event"] for line in (await node.process.stderr.read()).splitlines()]
        assert events.count("config_reloaded") == 1, events


async def test_a_data_directory_keeps_epochs_rising_and_is_one_nodes(tmp_path: Path) -> None:
    settings = {"node.data_directory": tmp_path / "data"}
    epochs = []
    for _ in range(2):
        async with running_node(settings) as node, Client(node.url) as client:
            position = (await client.publish("/a", 1)).position
            assert position is not None
            epochs.append(position.epoch)
            words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
            code, output, errors = await run("serve", "--client", "127.0.0.1:0", "--admin", "127.0.0.1:0", *words)
            assert (code, output) == (2, "") and "is in use by another node" in errors
            await node.kill()
    assert epochs[1] > epochs[0] + 1_000_000, "also a clock that was set back by minutes gives no epoch twice"


SLOW_AUTHORIZER = """
import asyncio, pathlib, sys
from godwit.access import Authorizer, Refusal

class Slow(Authorizer):
    async def start(self):
        print("it begins", file=sys.stderr, flush=True)
        while not pathlib.Path({go!r}).exists():
            await asyncio.sleep(0.01)

    async def connect(self, question):
        return Refusal("nobody")
"""


HANGING_IMPORT = """
import sys, time

print("it begins", file=sys.stderr, flush=True)
time.sleep(3600)
"""
HANGING_CONSTRUCTOR = """
import sys
from godwit.access import Authorizer

class Slow(Authorizer):
    async def connect(self, question): ...

    def __init__(self):
        print("it begins", file=sys.stderr, flush=True)
        while True:
            try:
                pass
            except BaseException:
                pass
"""


@asynccontextmanager
async def starting_node(folder: Path, code: str = SLOW_AUTHORIZER) -> AsyncIterator[asyncio.subprocess.Process]:
    """A node whose authorizer starts when the file `go` is there; it has begun to."""
    (folder / "slow.py").write_text(code.replace("{go!r}", repr(str(folder / "go"))))
    listeners = [word for name in ("client", "mqtt", "admin") for word in (f"--{name}", "127.0.0.1:0")]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "godwit", "serve", *listeners, "--set", "access.mode=custom"),
        *("--set", "access.authorizer=slow:Slow", "--set", "logging.format=json"),
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        while b"it begins" not in (line := await process.stderr.readline()):
            assert line, "it has ended"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_hangup_while_it_starts_harms_nothing_and_is_not_lost(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), starting_node(tmp_path) as process:
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGHUP)
        (tmp_path / "go").touch()
        assert process.stdout is not None and process.stderr is not None
        assert (await process.stdout.readline()).startswith(b"listening ")
        while b"config_reloaded" not in await process.stderr.readline():
            pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("code", [SLOW_AUTHORIZER, HANGING_IMPORT, HANGING_CONSTRUCTOR])
async def test_a_termination_while_it_starts_ends_it_at_once_with_0(
    tmp_path: Path, code: str, number: signal.Signals
) -> None:
    async with asyncio.timeout(DEADLINE_S), starting_node(tmp_path, code) as process:
        process.send_signal(number)
        assert await process.wait() == 0
        assert process.stdout is not None
        assert await process.stdout.read() == b"", "it has listened to nobody"
