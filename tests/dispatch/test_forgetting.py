"""Deleted data does not exist any more: erased addresses in any file, and old notifications with everything that belongs to them."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tests.dispatch.conftest import Running, WallClock, running
from tests.dispatch.email.test_email import Server, mailing, wait_for_state
from tests.dispatch.hostile.test_other_sides import serving
from tests.dispatch.inbox.test_python_inbox import device, until
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_webhook import LOOPBACK, put_webhook
from tests.dispatch.test_webhook import wait_for_state as wait_for_webhook

DEADLINE_S = 60
HI = {"to": {"receiver": "ann"}, "content": {"title": "hi"}}


def find_files(folder: Path, text: bytes) -> list[str]:
    """The files of a folder that hold a text."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


async def test_an_erased_address_is_in_no_file(tmp_path: Path, runtime: Path) -> None:
    said = "550 5.7.1 <ann@mail.example> is not welcome"
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, Server(said)) as both:
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "failed")
        assert row["ref"] == "550 5.7.1 <(address)> is not welcome"
        await both.api("PUT", "/v1/notifications/n2", {**HI, "dedupe": True})
        await wait_for(both, "n2")
        suppression = "/v1/suppressions/email/Ann@mail.example"
        assert (await both.api("PUT", suppression, {"reason": "complained"}))[0] == 200
        assert find_files(tmp_path, b"ann@mail.example")
        assert (await both.api("DELETE", "/v1/receivers/ann"))[0] == 204
        assert not find_files(tmp_path, b"ann@mail.example")
        assert not find_files(tmp_path, b"Ann@mail.example")
        assert (await both.api("GET", suppression))[0] == 200, "it outlives the receiver, as a digest"
        assert (await both.api("DELETE", "/v1/receivers/ann"))[0] == 404


async def test_a_deleted_address_is_in_no_file_and_gets_nothing(tmp_path: Path, runtime: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(tmp_path) as both:
        await both.api("PUT", "/v1/receivers/ann", {})
        hook = {"channel": "webhook", "value": "https://ok.sandbox.invalid/secret-path"}
        await both.api("PUT", "/v1/receivers/ann/addresses/hook", hook)
        assert (await both.api("DELETE", "/v1/receivers/ann/addresses/hook"))[0] == 204
        assert not find_files(tmp_path, b"secret-path")
        assert (await both.api("DELETE", "/v1/receivers/ann/addresses/hook"))[1]["code"] == 4334
        await both.api("PUT", "/v1/notifications/n1", HI)
        assert (await wait_for(both, "n1"))["counts"] == {"inbox": {"sent": 1}}


BROKEN = [b"HTTP/1.1 200 OK\r\nX\xff: a\r\n\r\n", b"HTTP/9 secret-path\r\n\r\n", b"/secret-path\r\n\r\n", b""]


@pytest.mark.parametrize("answer", BROKEN)
async def test_an_erased_url_whose_host_answers_nonsense_is_in_no_file(
    tmp_path: Path, runtime: Path, answer: bytes
) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with asyncio.timeout(DEADLINE_S), serving(talk) as host, running(tmp_path, LOOPBACK) as both:
        await put_webhook(both, f"http://{host}/secret-path")
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_webhook(both, "n1", "deferred")
        assert row["reason"] == "doubt" and row["ref"] and "127.0.0.1" not in row["ref"]
        assert (await both.api("DELETE", "/v1/receivers/ann"))[0] == 204
        assert not find_files(tmp_path, b"secret-path")


RETENTION_S = 3_600
OLD = {"dispatch_limits": {"retention_ms": RETENTION_S * 1_000, "sweep_ms": 100}}


async def test_old_notifications_go_with_all_that_belongs_to_them(
    tmp_path: Path, runtime: Path, wall_clock: WallClock
) -> None:
    async with asyncio.timeout(DEADLINE_S), running(tmp_path, OLD) as both:
        await both.api("PUT", "/v1/receivers/ann", {})
        token = await both.make_token("ann")
        await send_short(both, "n1")
        await wait_for(both, "n1")
        assert (await both.api("GET", "/v1/inbox/counts", key=token))[1]["unread"] == 1
        wall_clock.move(2 * RETENTION_S)
        while (await both.api("GET", "/v1/notifications/n1"))[0] == 200:
            pass
        _, answer = await both.api("GET", "/v1/inbox", key=token)
        assert (answer["items"], answer["unread"], answer["unseen"]) == ([], 0, 0)
        await send_short(both, "n2")
        while not (answer := (await both.api("GET", "/v1/inbox", key=token))[1])["items"]:
            pass
        assert answer["items"][0]["at"].endswith(".3"), "a SEQ is never used again, and the removal took one"
        wall_clock.move(2 * RETENTION_S)
        while (await both.api("GET", "/v1/notifications/n2"))[0] == 200:
            pass
    database = sqlite3.connect(tmp_path / "dispatch" / "dispatch.sqlite")
    for table in ("notification", "job", "delivery", "delivery_count", "item"):
        assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    database.close()


async def test_an_open_list_loses_an_item_that_is_too_old(tmp_path: Path, runtime: Path, wall_clock: WallClock) -> None:
    async with asyncio.timeout(DEADLINE_S), running(tmp_path, OLD) as both:
        await both.api("PUT", "/v1/receivers/ann", {})
        async with device(both) as inbox:
            await send_short(both, "n1")
            await until(inbox, ["n1"], 1)
            wall_clock.move(2 * RETENTION_S)
            await until(inbox, [], 0)


async def test_an_open_list_loses_the_oldest_item_of_a_full_inbox(tmp_path: Path, runtime: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(tmp_path, {"dispatch_limits": {"inbox_items_max": 10}}) as both:
        await both.api("PUT", "/v1/receivers/ann", {})
        async with device(both) as inbox:
            names = [f"n{number}" for number in range(12)]
            for name in names[:11]:
                await both.api("PUT", f"/v1/notifications/{name}", HI)
                await wait_for(both, name)
            await until(inbox, names[10:0:-1], 10)
            await both.api("PUT", f"/v1/notifications/{names[11]}", {**HI, "collapse_key": "k"})
            await until(inbox, names[11:1:-1], 10)


async def send_short(both: Running, name: str) -> None:
    assert (await both.api("PUT", f"/v1/notifications/{name}", {**HI, "expires_s": 600}))[0] == 202
