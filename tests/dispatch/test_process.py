"""`godwit serve --dispatch` as a process: its line, its key, its end, and what kill -9 leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

from godwit.children import follow_parent
from godwit.dispatch.api.keys import make_key
from godwit.dispatch.tokens import write_private
from tests.dispatch.conftest import Running
from tests.dispatch.test_webhook import endpoint

DEADLINE_S = 120
OPTIONS = ("--client", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--shards", "1")
SETTINGS = {
    "dispatch.address": "127.0.0.1:0",
    "dispatch.private_targets": "127.0.0.0/8",
    "dispatch_limits.sweep_ms": "100",
    "dispatch_limits.lease_ms": "1000",
}


async def serve(
    folder: Path, before: Sequence[str] = (), more: Mapping[str, object] | None = None
) -> tuple[asyncio.subprocess.Process, str]:
    """A process and the line in which it names its listeners; the line is empty where it ended before.

    `before` are words before its command, `more` further settings.
    """
    settings = [word for name, value in {**SETTINGS, **(more or {})}.items() for word in ("--set", f"{name}={value}")]
    process = await asyncio.create_subprocess_exec(
        *before,
        *(sys.executable, "-m", "godwit", "serve", "--dispatch", "--data", str(folder), *OPTIONS, *settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        preexec_fn=follow_parent(),
        env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
    )
    assert process.stdout is not None
    return process, (await process.stdout.readline()).decode()


@asynccontextmanager
async def served(
    folder: Path, before: Sequence[str] = (), more: Mapping[str, object] | None = None, *, seen: Path | None = None
) -> AsyncIterator[tuple[asyncio.subprocess.Process, Running]]:
    """A process that runs, and its API. `seen` is its folder as this process sees it, if that is another path."""
    process, line = await serve(folder, before, more)
    try:
        addresses = dict(word.split("=", 1) for word in line.split()[1:])
        key = ((seen or folder) / "dispatch" / "admin.key").read_text("ascii")
        async with aiohttp.ClientSession() as http:
            url, node_url = f"http://{addresses['dispatch']}", f"ws://{addresses['client']}"
            yield process, Running(url, node_url, key, http)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_it_names_its_listener_keeps_its_key_private_and_ends_in_order(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), served(tmp_path) as (process, both):
        assert (await both.api("PUT", "/v1/receivers/ann", {}))[0] == 201
        assert (await both.api("PUT", "/v1/receivers/ann", {}, key="gwk_wrong"))[0] == 401
        for name in ("admin.key", "token.key", "dispatch.sqlite"):
            assert (tmp_path / "dispatch" / name).stat().st_mode & 0o077 == 0, name
        second, line = await serve(tmp_path)
        assert (line, await second.wait()) == ("", 2)
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    assert not (tmp_path / "godwit" / "dispatch.json").exists()


async def send(folder: Path, *words: str) -> tuple[int | None, str]:
    """`godwit send`: its exit code, and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "godwit", "send", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "XDG_RUNTIME_DIR": str(folder)},
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def test_send_finds_the_dispatch_that_runs_here_and_creates_the_receiver(tmp_path: Path) -> None:
    async with asyncio.timeout(DEADLINE_S):
        code, output = await send(tmp_path, "--to", "user:42", "--text", "hi")
        assert code == 1 and "godwit serve --dispatch" in output
        async with served(tmp_path) as (_, both):
            code, output = await send(tmp_path, "--to", "user:42", "--text", "hi", "--id", "n1")
            assert (code, json.loads(output)) == (0, {"id": "n1", "state": "accepted"})
            token = await both.make_token("user:42")
            while not (answer := (await both.api("GET", "/v1/inbox", key=token))[1])["items"]:
                pass
            assert answer["items"][0]["content"] == {"body": "hi"}
            code, output = await send(tmp_path, "--to", "user:42", "--text", "other", "--id", "n1")
            assert code == 1 and "4307" in output
            assert (await send(tmp_path, "--to", "user:42"))[0] == 2


async def test_a_send_to_a_group_that_is_killed_on_its_way_reaches_everybody(tmp_path: Path) -> None:
    """The cursor of a job moves with the intents of its page, so a restart passes over nobody."""
    taken: Counter[str] = Counter()
    unflagged: Counter[str] = Counter()
    arrived = asyncio.Event()
    count, kills = 300, 3
    more = {"dispatch_limits.page_receivers_max": 25, "dispatch_limits.webhook_sends_max": 8}

    async def take(request: web.Request) -> web.Response:
        event = await request.json()
        taken[event["subject"]] += 1
        unflagged[event["subject"]] += not event.get("possibleduplicate", False)
        arrived.set()
        return web.Response()

    async def put_all(both: Running, url: str) -> None:
        await both.api("PUT", "/v1/groups/news")
        address = {"id": "w", "channel": "webhook", "value": url}
        receivers = [json.dumps({"id": f"r{number}", "addresses": [address]}) for number in range(count)]
        assert (await both.api("POST", "/v1/receivers/import", "\n".join(receivers).encode()))[1]["lines"] == count
        lines = [json.dumps({"receiver": f"r{number}"}) for number in range(count)]
        assert (await both.api("POST", "/v1/groups/news/import?version=1", "\n".join(lines).encode()))[0] == 200
        assert (await both.api("PUT", "/v1/groups/news/version", {"version": 1}))[0] == 200
        body = {"to": {"group": "news"}, "content": {"title": "x"}}
        assert (await both.api("PUT", "/v1/notifications/n1", body))[0] == 202

    async with asyncio.timeout(DEADLINE_S), endpoint(take) as url:
        for number in range(kills):
            async with served(tmp_path, more=more) as (process, both):
                if not number:
                    await put_all(both, url)
                until = len(taken) + count // 5
                while len(taken) < until:
                    arrived.clear()
                    await arrived.wait()
                process.kill()
                await process.wait()
        assert len(taken) < count, "it was killed on its way"
        async with served(tmp_path, more=more) as (_, both):
            while (answer := (await both.api("GET", "/v1/notifications/n1"))[1])["state"] != "settled":
                pass
    assert answer["counts"] == {"inbox": {"sent": count}, "webhook": {"sent": count}}
    assert len(taken) == count and max(unflagged.values()) == 1


async def test_dispatch_runs_without_a_node_makes_keys_and_ends_in_order(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}

    async def run(*words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "godwit", "dispatch", *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            preexec_fn=follow_parent(),
            env=environment,
        )

    words = ("run", "all", "--data", str(tmp_path), "--set", "dispatch.address=127.0.0.1:0")
    async with asyncio.timeout(DEADLINE_S):
        process = await run(*words, "--set", "dispatch.node_url=ws://127.0.0.1:9")
        assert process.stdout is not None
        assert (await process.stdout.readline()).decode().startswith("listening dispatch=127.0.0.1:")
        second = await run(*words)
        assert (await second.communicate())[0] == b"" and second.returncode == 2
        made = json.loads((await (await run("key", "--scope", "send", "--test")).communicate())[0])
        assert made["key"].startswith("gwt_") and made["scopes"] == ["send"]
        replayed = await run("replay", "--dry-run")
        assert (await replayed.communicate())[0] == b"" and replayed.returncode == 0
        process.terminate()
        assert await process.wait() == 0


async def test_a_first_start_that_was_cut_is_finished_by_the_next(tmp_path: Path) -> None:
    """The file of the admin key was written, and the database has no row of it; as where the database was removed."""
    folder = tmp_path / "dispatch"
    folder.mkdir(mode=0o700)
    write_private(folder / "admin.key", make_key().encode())
    async with asyncio.timeout(DEADLINE_S), served(tmp_path) as (_, both):
        assert (await both.api("GET", "/v1/receivers"))[0] == 200
