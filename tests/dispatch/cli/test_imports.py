"""`godwit receivers import`, `groups import` and `inbox` with a real dispatch: every line counted, and continued after a failure."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from godwit.cli import imports, inbox
from godwit.cli.imports import groups, receivers
from godwit.cli.send import SendFailed
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_inbox import wait_for

DEADLINE_S = 60


async def run(both: Running, command: Any, *words: str, folder: Path) -> Result:
    key = folder / "dispatch" / "admin.key"
    given = [*words, "--dispatch", both.url, "--key-file", str(key)]
    return await asyncio.to_thread(CliRunner().invoke, command, given)


async def test_receivers_are_imported_in_parts_and_bad_lines_named(
    dispatch: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "PART_LINES", 10)
    lines = [json.dumps({"id": f"user:{number}", "locale": "de"}) for number in range(35)]
    lines[12], lines[30] = '{"id": ""}', "not JSON"
    file = tmp_path / "receivers.ndjson"
    file.write_text("\n".join(lines))
    async with asyncio.timeout(DEADLINE_S):
        done = await run(dispatch, receivers, "import", str(file), folder=tmp_path)
        assert done.exit_code == 1
        *rows, answer = [json.loads(line) for line in done.stdout.splitlines()]
        assert answer == {"lines": 35, "rejected": 2}
        assert [(row["line"], row["code"]) for row in rows] == [(13, 4300), (31, 4300)]
        assert done.stderr.splitlines()[-1] == "35 lines, 2 rejected" and len(done.stderr.splitlines()) == 4
        assert (await dispatch.api("GET", "/v1/receivers/user:34"))[1]["locale"] == "de"
        again = await run(dispatch, receivers, "import", str(file), "--after-line", "31", folder=tmp_path)
        assert (again.exit_code, again.stderr) == (0, "35 lines, 0 rejected\n")


async def test_an_import_that_stops_says_where_to_continue(
    dispatch: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "PART_LINES", 10)
    await dispatch.api("PUT", "/v1/tenants/default", {"quotas": {"receivers": 15}})
    file = tmp_path / "receivers.ndjson"
    file.write_text("".join(f'{{"id": "user:{number}"}}\n' for number in range(30)))
    stopped = await run(dispatch, receivers, "import", str(file), folder=tmp_path)
    assert isinstance(stopped.exception, SendFailed)
    assert "after line 10" in str(stopped.exception) and "--after-line 10" in str(stopped.exception)
    await dispatch.api("PUT", "/v1/tenants/default", {"quotas": {}})
    done = await run(dispatch, receivers, "import", str(file), "--after-line", "10", folder=tmp_path)
    assert done.exit_code == 0 and (await dispatch.api("GET", "/v1/receivers/user:29"))[0] == 200


async def test_a_group_changes_when_all_its_lines_are_there(dispatch: Running, tmp_path: Path) -> None:
    for name in ("ann", "bob"):
        await dispatch.api("PUT", f"/v1/receivers/{name}", {})
    file = tmp_path / "members.ndjson"
    file.write_text('{"receiver": "ann"}\n{"receiver": "nobody"}\n')
    done = await run(dispatch, groups, "import", str(file), "--group", "news", folder=tmp_path)
    [row, answer] = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 1 and row["line"] == 2 and not answer["current"]
    assert (await dispatch.api("GET", "/v1/groups/news"))[1]["version"] == 0
    file.write_text('{"receiver": "bob"}\n')
    done = await run(dispatch, groups, "import", str(file), "--group", "news", folder=tmp_path)
    assert done.exit_code == 0, done.stderr
    _, answer = await dispatch.api("GET", "/v1/groups/news")
    assert (answer["version"], answer["receivers"]) == (2, 1), "nothing of an import that failed"
    wrong = await run(dispatch, groups, "import", str(file), "--group", "news", "--after-line", "1", folder=tmp_path)
    assert wrong.exit_code == 2 and "--version" in wrong.output


async def test_a_group_does_not_change_to_what_was_only_partly_seen(
    dispatch: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann", "bob", "cid"):
        await dispatch.api("PUT", f"/v1/receivers/{name}", {})
    file = tmp_path / "members.ndjson"

    async def load(*more: str) -> Result:
        return await run(dispatch, groups, "import", str(file), "--group", "news", *more, folder=tmp_path)

    async def version() -> int:
        return int((await dispatch.api("GET", "/v1/groups/news"))[1]["version"])

    file.write_text('{"receiver": "ann"}\n{"receiver": "nobody"}\n{"receiver": "cid"}\n')
    assert (await load()).exit_code == 1
    resumed = await load("--after-line", "2", "--version", "1")
    assert resumed.exit_code == 0 and not json.loads(resumed.stdout)["current"] and "--switch" in resumed.stderr
    assert await version() == 0, "line 2 was rejected before"
    done = await load("--after-line", "2", "--version", "1", "--switch")
    assert json.loads(done.stdout)["current"] and await version() == 1
    for more in (("--after-line", "3", "--version", "1", "--switch"), ("--after-line", "9", "--version", "2")):
        assert isinstance((await load(*more)).exception, SendFailed)
    file.write_text("")
    assert isinstance((await load()).exception, SendFailed) and await version() == 1


async def test_an_inbox_is_shown_oldest_first_and_followed(dispatch: Running, tmp_path: Path) -> None:
    for name in ("n1", "n2", "n3"):
        body = {"to": {"receiver": {"id": "ann"}}, "content": {"title": name}}
        await dispatch.api("PUT", f"/v1/notifications/{name}", body)
        await wait_for(dispatch, name)
    done = await run(dispatch, inbox.inbox, "ann", "--limit", "2", folder=tmp_path)
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["content"]["title"] for line in done.stdout.splitlines()] == ["n2", "n3"]
    missing = await run(dispatch, inbox.inbox, "nobody", folder=tmp_path)
    assert isinstance(missing.exception, SendFailed)
    command = ("-m", "godwit", "inbox", "ann", "--limit", "1", "--follow", "--dispatch", dispatch.url)
    follower = await asyncio.create_subprocess_exec(
        *(sys.executable, *command, "--key-file", str(tmp_path / "dispatch" / "admin.key")),
        stdout=asyncio.subprocess.PIPE,
    )
    assert follower.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            assert json.loads(await follower.stdout.readline())["id"] == "n3"
            body = {"to": {"receiver": "ann"}, "content": {"title": "n4"}}
            await dispatch.api("PUT", "/v1/notifications/n4", body)
            assert json.loads(await follower.stdout.readline())["id"] == "n4"
    finally:
        follower.kill()
        await follower.wait()


async def test_a_follower_continues_after_a_restart_of_dispatch(tmp_path: Path, runtime: Path) -> None:
    body = {"to": {"receiver": {"id": "ann"}}, "content": {"title": "x"}}
    follower: asyncio.subprocess.Process | None = None
    port, names = 0, ["n0", "n1", "n2"]
    try:
        async with asyncio.timeout(DEADLINE_S):
            for name in names:
                async with running(tmp_path, {"dispatch": {"address": f"127.0.0.1:{port}"}}) as both:
                    port = int(both.url.rpartition(":")[2])
                    assert (await both.api("PUT", f"/v1/notifications/{name}", body))[0] == 202
                    await wait_for(both, name)
                    if follower is None:
                        command = ("-m", "godwit", "inbox", "ann", "--follow", "--dispatch", both.url)
                        follower = await asyncio.create_subprocess_exec(
                            *(sys.executable, *command, "--key-file", str(tmp_path / "dispatch" / "admin.key")),
                            stdout=asyncio.subprocess.PIPE,
                            stderr=asyncio.subprocess.DEVNULL,
                        )
                    assert follower.stdout is not None
                    assert json.loads(await follower.stdout.readline())["id"] == name
    finally:
        if follower is not None and follower.returncode is None:
            follower.kill()
            await follower.wait()
