"""Attempts from the same address do not affect connected clients, and wrong tokens never block the right one."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest

from godwit import testing
from tests.hostile.peer import Peer, request
from tests.mqtt import packets
from tests.raw_client import raw_client

DEADLINE_S = 60
SECRET, ISSUER = "s" * 64, "https://login.example"
ADMIN_TOKEN = "an-admin-token-of-a-test"
WRONG_MAX = 12


def make_settings(folder: Path, failures: int) -> dict[str, Any]:
    (folder / "secret").write_text(SECRET)
    return {
        "access": {"mode": "jwt"},
        "issuers": {ISSUER: {"keys_file": str(folder / "secret"), "algorithms": ["HS256"]}},
        "limits": {"token_failures_per_minute_per_address_max": failures},
    }


def make_token(name: str, secret: str = SECRET) -> str:
    claims = {"iss": ISSUER, "sub": name, "jti": f"{name}-{time.monotonic_ns()}", "exp": time.time() + 600}
    return jwt.encode({**claims, "permissions": {"allow": {"both": ["/a"]}}}, secret, "HS256")


async def post(node: testing.RunningNode, token: str) -> int:
    async with Peer.open(node.client.host, node.client.port) as peer:
        fields = ("Content-Type: text/plain", f"Authorization: Bearer {token}")
        await peer.say(request("POST", "/v1/messages?subject=/a", *fields, body=b"x"))
        return await peer.status()


async def test_who_has_come_renews_while_a_neighbour_shows_bad_tokens(tmp_path: Path) -> None:
    async with (
        testing.node(make_settings(tmp_path, 5)) as node,
        asyncio.timeout(DEADLINE_S),
        raw_client(f"ws://{node.client}") as live,
        Peer.open(node.client.host, node.client.port) as kept,
    ):
        assert (await live.ask({"id": 0, "connect": {"token": make_token("ann")}}))["ok"] == "connected"
        fields = ("Content-Type: text/plain",)
        await kept.say(
            request("POST", "/v1/messages?subject=/a", *fields, f"Authorization: Bearer {make_token('ann')}", body=b"x")
        )
        assert (await kept.answer())[0] == 201
        statuses = [await post(node, make_token("ann", secret=f"{n}" * 64)) for n in range(8)]
        assert statuses == [401] * 5 + [429] * 3
        for number in range(1, 4):
            renewed = await live.ask({"id": number, "connect": {"token": make_token("ann")}})
            assert renewed["ok"] == "connected", renewed
            token = f"Authorization: Bearer {make_token('ann')}"
            await kept.say(request("POST", "/v1/messages?subject=/a", *fields, token, body=b"x"))
            assert (await kept.answer())[0] == 201
        assert (await live.ask({"id": 9, "publish": "/a", "content": 1}))["ok"] == "published"


async def test_a_device_that_shows_an_old_token_all_the_time_hinders_no_other_device(tmp_path: Path) -> None:
    old = make_token("ann", secret="x" * 64)
    async with testing.node(make_settings(tmp_path, 5)) as node, asyncio.timeout(DEADLINE_S):
        assert node.mqtt is not None

        async def come(token: str) -> int:
            assert node.mqtt is not None
            async with Peer.open(node.mqtt.host, node.mqtt.port) as device:
                await device.say(packets.connect("d", username="", password=token.encode()))
                return (await device.reader.readexactly(4))[3]

        codes = [await come(old) for _ in range(20)]
        assert set(codes) == {0x86, 0x97} and codes[-1] == 0x97, "it is asked to wait itself"
        assert await come(make_token("ann")) == 0
        assert await post(node, make_token("bob")) == 201


@pytest.mark.parametrize("interleaved", [False, True])
async def test_twelve_wrong_admin_tokens_do_not_lock_out_the_right_one(interleaved: bool) -> None:
    async with (
        testing.node({"admin": {"token": ADMIN_TOKEN}}) as node,
        asyncio.timeout(DEADLINE_S),
        aiohttp.ClientSession() as http,
    ):

        async def change(token: str) -> int:
            head = {"Authorization": f"Bearer {token}"}
            url = f"{node.admin_url}/v1/subjects?subject=/a"
            async with http.delete(url, headers=head) as answer:
                return answer.status

        known = await change(ADMIN_TOKEN)
        assert known not in (401, 403, 429)
        wrong = (f"wrong-{number}" for number in itertools.count())
        for _ in range(WRONG_MAX):
            assert await change(next(wrong)) in (401, 429)
            if interleaved:
                assert await change(ADMIN_TOKEN) == known
        assert await change(next(wrong)) == 429 and await change(ADMIN_TOKEN) == known
