"""No file has stored secrets in plain text, and `godwit dispatch rekey` encrypts them with a new key without losing one,
even if it is killed.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from click.testing import CliRunner

from godwit.cli.dispatch import rekey as command
from godwit.dispatch.errors import DispatchDatabaseInvalid
from godwit.dispatch.stores.sqlite import receivers
from godwit.dispatch.stores.sqlite.feed import hooks
from godwit.dispatch.stores.sqlite.manage import rekeying
from godwit.dispatch.stores.sqlite.store import SqliteStore
from godwit.dispatch.vault import read_keys
from godwit.errors import ConfigInvalid
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_forgetting import find_files
from tests.dispatch.test_webhook import LOOPBACK, endpoint, wait_for_state

DEADLINE_S = 60
HI = {"to": {"receiver": "ann"}, "content": {"title": "hi"}}
PASSWORD = "the-password-of-a-relay"
FORM = {"body": '{"x": 1}', "headers": {"Authorization": "Bearer the-key-of-a-service"}}


async def test_a_webhook_is_signed_with_the_same_secret_after_a_new_key(tmp_path: Path, runtime: Path) -> None:
    from standardwebhooks.webhooks import Webhook

    taken: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        taken.put_nowait((dict(request.headers), await request.read()))
        return web.Response()

    async def send(both: Running, name: str, secret: str) -> None:
        await both.api("PUT", f"/v1/notifications/{name}", HI)
        for _ in range(2):
            headers, body = await taken.get()
            if "Authorization" in headers:
                assert headers["Authorization"] == FORM["headers"]["Authorization"]  # type: ignore[index]  # a dictionary
            else:
                Webhook(secret).verify(body, headers)
        await wait_for_state(both, name, "sent")

    keys = tmp_path / "elsewhere.key"
    settings = {**LOOPBACK, "dispatch": {**LOOPBACK["dispatch"], "secrets_key_file": str(keys)}}
    folder, options = (
        tmp_path / "data",
        ["--data", str(tmp_path / "data"), "--set", f"dispatch.secrets_key_file={keys}"],
    )
    async with asyncio.timeout(DEADLINE_S), endpoint(take) as url:
        async with running(folder, settings) as both:
            provider = {"relay": "127.0.0.1:9", "sender": "a@shop.example", "user": "u", "password": PASSWORD}
            assert (await both.api("PUT", "/v1/providers/west", provider))[0] == 201
            await both.api("PUT", "/v1/receivers/ann")
            _, made = await both.api("PUT", "/v1/receivers/ann/addresses/a", {"channel": "webhook", "value": url})
            other = {"channel": "webhook", "value": url, "format": FORM}
            assert (await both.api("PUT", "/v1/receivers/ann/addresses/b", other))[0] == 200
            _, hook = await both.api("PUT", "/v1/webhooks/w", {"url": url, "types": ["webhook.disabled"]})
            await both.api("POST", "/v1/webhooks/w/rotate")
            await send(both, "n1", made["secret"])
            for text in (made["secret"], hook["secret"], "the-key-of-a-service", PASSWORD):
                assert not find_files(folder, text.encode())
            answer = await asyncio.to_thread(CliRunner().invoke, command, options)
            assert isinstance(answer.exception, ConfigInvalid), "a running dispatch holds the lock"
        [before] = read_keys(keys)
        answer = await asyncio.to_thread(CliRunner().invoke, command, options)
        assert answer.exit_code == 0, answer.output
        shown = json.loads(answer.output)
        assert (shown["addresses"], shown["webhooks"], shown["unreadable"]) == (2, 1, 0)
        [after] = read_keys(keys)
        assert after != before and not keys.with_suffix(".new").exists()
        async with running(folder, settings) as both:
            await send(both, "n2", made["secret"])
            assert (await both.api("GET", "/v1/providers/west"))[1]["has_password"]


def fill(folder: Path) -> list[tuple[Any, ...]]:
    """A store with some secrets, and what they are."""
    store = SqliteStore(folder)
    store.close()
    return change(folder)


def change(folder: Path) -> list[tuple[Any, ...]]:
    async def run() -> None:
        store = SqliteStore(folder)
        try:
            await store.writer.run(lambda connection: receivers.put_receiver(connection, "t", "ann", b"{}", 1))
            for number in range(25):
                value = f"https://a.example/{number}"
                row = ("t", "ann", f"a{number}", "webhook", value, '{"preset":"slack"}')
                await store.writer.run(lambda connection, row=row: receivers.put_address(connection, *row))
            await store.writer.run(
                lambda connection: hooks.put_hook(connection, "t", "w", "https://a.example/", [], "counts")
            )
        finally:
            store.close()

    asyncio.run(run())
    return asyncio.run(read(folder))


async def read(folder: Path) -> list[tuple[Any, ...]]:
    store = SqliteStore(folder)
    try:
        return await store.reader.run(
            lambda connection: [
                *connection.execute("SELECT unseal(secret), unseal(format) FROM address ORDER BY aid").fetchall(),
                *connection.execute("SELECT unseal(secret) FROM webhook").fetchall(),
            ]
        )
    finally:
        store.close()


def test_a_run_that_is_killed_anywhere_loses_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fill(tmp_path / "0")
    monkeypatch.setattr(rekeying, "ROWS", 10)
    whole = rekeying._rekey_table
    write = rekeying.write_keys

    class Killed(BaseException):
        pass

    for steps in range(1, 5):
        folder = tmp_path / str(steps)
        shutil.copytree(tmp_path / "0", folder)
        left = [steps]

        def step(do: Any, *given: Any, left: list[int] = left) -> Any:
            left[0] -= 1
            if not left[0]:
                raise Killed
            return do(*given)

        monkeypatch.setattr(rekeying, "_rekey_table", lambda *given, step=step: step(whole, *given))
        monkeypatch.setattr(rekeying, "write_keys", lambda *given, step=step: step(write, *given))
        with pytest.raises(Killed):
            rekeying.rekey(folder)
        assert asyncio.run(read(folder)) == expected, steps
        monkeypatch.setattr(rekeying, "_rekey_table", whole)
        monkeypatch.setattr(rekeying, "write_keys", write)
        assert rekeying.rekey(folder).addresses == 25
        assert asyncio.run(read(folder)) == expected and len(read_keys(folder / "secrets.key")) == 1, steps


def test_a_store_without_its_key_does_not_open(tmp_path: Path) -> None:
    expected = fill(tmp_path)
    (tmp_path / "secrets.key").rename(tmp_path / "kept")
    with pytest.raises(DispatchDatabaseInvalid):
        SqliteStore(tmp_path)
    (tmp_path / "kept").replace(tmp_path / "secrets.key")
    assert asyncio.run(read(tmp_path)) == expected


def test_secrets_of_an_earlier_version_are_read_and_encrypted_by_the_next_key(tmp_path: Path) -> None:
    fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "dispatch.sqlite")) as connection:
        connection.execute("UPDATE address SET secret = 'whsec_plain' || aid, format = ''")
        connection.commit()
    expected = asyncio.run(read(tmp_path))
    assert expected[0] == ("whsec_plain1", "")
    assert rekeying.rekey(tmp_path).addresses == 25
    assert asyncio.run(read(tmp_path)) == expected and not find_files(tmp_path, b"whsec_plain")
