"""Disk full, a stopped process, clocks that jump, a node that is away, slow bodies, hostile text. Numbers are the design's."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from godwit.config import build_config
from godwit.dispatch.channels.email.message import make_message
from godwit.dispatch.channels.letter import Letter
from godwit.dispatch.model import DeliveryKey, Shipment, Target
from godwit.dispatch.part import DispatchPart
from tests.dispatch.conftest import Running, WallClock, running
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_policies import ANN, FAST, SANDBOX
from tests.dispatch.test_webhook import LOOPBACK, endpoint, put_webhook, wait_for_state

DEADLINE_S = 90
LIMIT_MS = 1_000
"""How long a body may take: much longer than one answer of the API does."""


async def test_13_a_test_key_reaches_no_live_provider(tmp_path: Path, runtime: Path) -> None:
    taken: list[bytes] = []

    async def take(request: web.Request) -> web.Response:
        taken.append(await request.read())
        return web.Response()

    async with running(tmp_path, LOOPBACK) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        _, made = await both.api("POST", "/v1/keys", {"scopes": ["send"], "test": True})
        assert (await both.api("PUT", "/v1/notifications/n1", ANN, key=made["key"]))[0] == 202
        row = await wait_for_state(both, "n1", "suppressed")
        assert row["reason"] == "test_key" and not taken


async def test_16_a_slow_body_is_refused_and_delays_nobody(tmp_path: Path, runtime: Path) -> None:
    limits = {"dispatch_limits": {"request_body_ms_max": LIMIT_MS}}
    async with running(tmp_path, limits) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        host, _, port = both.url.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        head = f"POST /v1/notifications HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {both.key}\r\nContent-Length: 1000\r\n\r\n"
        writer.write(head.encode() + b'{"to":')
        answered = asyncio.create_task(reader.readuntil(b"\r\n"))
        sent = 0
        while not answered.done():  # a byte now and then does not help
            writer.write(b" ")
            assert (await both.api("PUT", f"/v1/notifications/n{sent}", ANN))[0] == 202
            sent += 1
        assert b" 408 " in await answered and sent > 0
        body = await reader.read(4_096)
        assert b'"code":4335' in body and b'"accepted":false' in body
        writer.close()

        lines: list[bytes] = []

        async def drip() -> Any:
            end_s = time.monotonic() + 2 * LIMIT_MS / 1_000
            while time.monotonic() < end_s:  # longer than the limit together, and never that long between two
                lines.append(json.dumps({"id": f"user:{len(lines)}"}).encode() + b"\n")
                yield lines[-1]
                assert (await both.api("GET", "/v1/receivers/ann"))[0] == 200

        headers = {"Authorization": f"Bearer {both.key}"}
        async with both.http.post(f"{both.url}/v1/receivers/import", data=drip(), headers=headers) as answer:
            assert answer.status == 200 and (await answer.json())["lines"] == len(lines)


async def test_16_a_store_that_is_slow_is_not_the_fault_of_a_client(tmp_path: Path, runtime: Path) -> None:
    limits = {"dispatch_limits": {"request_body_ms_max": 200}}
    async with running(tmp_path, limits) as both, asyncio.timeout(DEADLINE_S):
        assert both.part is not None
        lines = b"".join(
            json.dumps({"id": f"user:{number}", "zone": "Europe/Berlin"}).encode() + b"\n" for number in range(20_000)
        )
        writing, released = threading.Event(), threading.Event()

        def block(connection: object) -> None:
            writing.set()
            released.wait(DEADLINE_S)

        blocked = asyncio.create_task(both.part.store.writer.run(block))
        await asyncio.to_thread(writing.wait, DEADLINE_S)
        importing = asyncio.create_task(both.api("POST", "/v1/receivers/import", lines))
        done, _ = await asyncio.wait({importing}, timeout=1)  # five times what a client may take
        assert not done
        released.set()
        await blocked
        status, answer = await importing
        assert (status, answer["lines"], answer["rejected_count"]) == (200, 20_000, 0)


async def test_16_a_path_that_only_looks_like_an_import_has_no_more_time(tmp_path: Path, runtime: Path) -> None:
    async with (
        running(tmp_path, {"dispatch_limits": {"request_body_ms_max": 300}}) as both,
        asyncio.timeout(DEADLINE_S),
    ):

        async def drip() -> Any:
            yield b'{"locale":'
            while True:
                yield b" "  # a byte now and then does not help
                assert (await both.api("GET", "/health/ready"))[0] == 200

        headers = {"Authorization": f"Bearer {both.key}"}
        async with both.http.put(f"{both.url}/v1/receivers/import", data=drip(), headers=headers) as answer:
            assert answer.status == 408 and (await answer.json())["code"] == 4335


@pytest.mark.parametrize("title", ["a\u202eb", "a\u2066b", "a\x00b", "a\x1b[2Jb", "a\r\nBcc: x@y.z", "a\u2028b"])
async def test_23_bidi_and_control_characters_form_no_header_and_reach_an_inbox_as_data(
    dispatch: Running, title: str
) -> None:
    shipment = Shipment(DeliveryKey(1, 2, "email", 3), "t", Target(2, 3, "ann", "ann@example.com"), 1, 10)
    letter = Letter("n", 0, json.dumps({"title": title}).encode())
    head = make_message(shipment, letter, "news@shop.example").partition(b"\r\n\r\n")[0].decode()
    assert "\nSubject: a" in head and "\nBcc" not in head
    assert not any(char in head for char in "\u202e\u2066\x00\x1b\u2028")
    async with asyncio.timeout(DEADLINE_S):
        body = {"to": {"receiver": {"id": "ann"}}, "content": {"title": title}}
        assert (await dispatch.api("PUT", "/v1/notifications/n1", body))[0] == 202
        await wait_for(dispatch, "n1")
        _, answer = await dispatch.api("GET", "/v1/inbox?after=0.0", key=await dispatch.make_token("ann"))
        assert answer["items"][0]["content"]["title"] == title


@pytest.mark.parametrize(
    "value",
    ["+19005550000", "a@b", "a@-b.example", "a@b-.example", "a@b.c-", "mailto:a@b.example", "a@b.example,c@d.example"],
)
async def test_31_what_is_no_address_of_a_channel_is_refused(dispatch: Running, value: str) -> None:
    await dispatch.api("PUT", "/v1/receivers/ann", {})
    for channel, expected in (("email", 4313), ("webhook", 4313), ("sms", 4300)):
        body = {"channel": channel, "value": value}
        status, answer = await dispatch.api("PUT", "/v1/receivers/ann/addresses/x", body)
        assert (status, answer["code"]) == (422, expected), (channel, answer)


@pytest.mark.parametrize("path", ["/in/twilio/wrong-secret", "/in/relay/", "/in/x/" + "y" * 500])
async def test_34_a_callback_with_a_wrong_secret_changes_nothing(dispatch: Running, path: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        token = await _send_to_ann(dispatch)
        before = (await dispatch.api("GET", "/v1/notifications/n1/deliveries"))[1]
        status, answer = await dispatch.api("POST", path, {"status": "failed", "id": "n1"})
        assert (status, answer["code"], answer["accepted"]) == (404, 4308, False)
        assert (await dispatch.api("GET", "/v1/notifications/n1/deliveries"))[1] == before
        assert (await dispatch.api("GET", "/v1/inbox/counts", key=token))[1]["unread"] == 1


async def test_37_a_forged_receipt_changes_nothing(dispatch: Running) -> None:
    async with asyncio.timeout(DEADLINE_S):
        token = await _send_to_ann(dispatch)
        await dispatch.api("PUT", "/v1/receivers/eve", {})
        other = token[:-4] + ("A" if token[-4] != "A" else "B") + token[-3:]  # the last bits of base64 may say nothing
        head, payload, signature = token.split(".")
        unsigned = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode()
        swapped = (await dispatch.make_token("eve")).split(".")
        forged = (
            "",
            "x.y.z",
            token[:-2],
            other,
            dispatch.key,
            f"{unsigned}.{payload}.",
            f"{head}.{payload}.{swapped[2]}",
        )
        for kind in ("delivered", "read", "confirmed"):
            for key in (*forged, f"{head}.{swapped[1]}.{signature}"):
                status, answer = await dispatch.api("POST", "/v1/inbox/marks", {"mark": kind, "up_to": "9.9"}, key=key)
                assert (status, answer["code"]) == (401, 4312)
        mark = {"mark": "read", "ids": ["n1"]}
        assert (await dispatch.api("POST", "/v1/inbox/marks", mark, key=".".join(swapped)))[1]["items"] == []
        [row] = (await dispatch.api("GET", "/v1/notifications/n1/deliveries"))[1]["deliveries"]
        assert row["state"] == "sent" and (await dispatch.api("GET", "/v1/inbox/counts", key=token))[1]["unread"] == 1


async def _send_to_ann(both: Running) -> str:
    """Ann's token, once n1 is in her inbox."""
    body = {"to": {"receiver": {"id": "ann"}}, "content": {"title": "hi"}}
    await both.api("PUT", "/v1/notifications/n1", body)
    await wait_for(both, "n1")
    return await both.make_token("ann")


async def test_50_a_full_disk_refuses_and_loses_nothing_that_was_accepted(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/receivers/ann/addresses/hook", SANDBOX)
        assert both.part is not None
        store = both.part.store
        content = {"title": "x", "body": "y" * 9_000}
        names: list[str] = []
        await store.writer.run(lambda connection: _limit_pages(connection, 20))
        for number in range(1_000):
            status, answer = await both.api("PUT", f"/v1/notifications/n{number}", {**ANN, "content": content})
            if status != 202:
                assert (status, answer["code"], answer["retry"]) == (503, 4311, True)
                break
            names.append(f"n{number}")
        else:
            pytest.fail("the disk was never full")
        assert (await both.api("GET", "/v1/receivers/ann"))[0] == 200, "reading goes on"
        await store.writer.run(lambda connection: _limit_pages(connection, 1_000_000))
        again = f"n{len(names)}"
        status, answer = await both.api("PUT", f"/v1/notifications/{again}", {**ANN, "content": content})
        assert status == 202 and "repeat" not in answer, "what was refused was not accepted"
        for name in (*names, again):
            await wait_for(both, name)
            assert (await wait_for_state(both, name, "sent"))["attempt"] == 1


def _limit_pages(connection: Any, more: int) -> None:
    count = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {count + more}")


@pytest.mark.parametrize("shift_s", [86_400, -86_400])
async def test_51_a_clock_that_jumps_a_day_loses_and_repeats_nothing(
    tmp_path: Path, runtime: Path, wall_clock: WallClock, shift_s: int
) -> None:
    taken: Counter[str] = Counter()

    async def take(request: web.Request) -> web.Response:
        taken[(await request.json())["data"]["notification"]] += 1
        return web.Response()

    async with running(tmp_path, LOOPBACK) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        await both.api("PUT", "/v1/notifications/n1", ANN)
        await wait_for_state(both, "n1", "sent")
        wall_clock.move(shift_s)
        for name in ("n2", "n3"):
            assert (await both.api("PUT", f"/v1/notifications/{name}", ANN))[0] == 202
            await wait_for_state(both, name, "sent")
        wall_clock.move(-shift_s)
        await both.api("PUT", "/v1/notifications/n4", ANN)
        await wait_for_state(both, "n4", "sent")
    assert taken == {"n1": 1, "n2": 1, "n3": 1, "n4": 1}


async def test_53_a_node_that_is_away_delays_no_channel_but_the_inbox_of_connected_clients(
    tmp_path: Path, runtime: Path
) -> None:
    table = {"node": {"data_directory": str(tmp_path)}, "dispatch": {"enabled": True, "address": "127.0.0.1:0"}, **FAST}
    part = DispatchPart(build_config(table, {}, {}))
    async with asyncio.timeout(DEADLINE_S):
        address = await part.start_at("ws://127.0.0.1:9")
        try:
            async with aiohttp.ClientSession() as http:
                key = (tmp_path / "dispatch" / "admin.key").read_text("ascii")
                both = Running(f"http://{address}", "", key, http)
                await both.api("PUT", "/v1/receivers/ann", {})
                await both.api("PUT", "/v1/receivers/ann/addresses/hook", SANDBOX)
                token = await both.make_token("ann")
                poll = asyncio.create_task(both.api("GET", "/v1/inbox?after=0.0&wait=30", key=token))
                assert (await both.api("PUT", "/v1/notifications/n1", ANN))[0] == 202
                await wait_for_state(both, "n1", "sent")
                await wait_for(both, "n1")
                _, answer = await poll
                if not answer["items"]:
                    _, answer = await both.api("GET", "/v1/inbox?after=0.0", key=token)
                assert [item["id"] for item in answer["items"]] == ["n1"]
        finally:
            await part.stop()
