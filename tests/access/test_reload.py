"""A reload that narrows the grants of an issuer's tokens applies to connected clients with such a token."""

import asyncio
from pathlib import Path
from typing import Any

import jwt
import pytest

from godwit import testing
from godwit.client import Client, CommandRefused
from godwit.codes import Code
from godwit.config import build_config
from tests.hostile.peer import Peer

DEADLINE_S = 60
KEYS = ["one-secret-that-is-long-enough-for-hs256", "another-secret-long-enough-for-hs256"]
EXP = 4_000_000_000


def make_table(folder: Path, change: str) -> dict[str, Any]:
    keys = folder / f"keys-{change}"
    keys.write_text("\n".join(KEYS[:1] if change == "key removed" else KEYS))
    issuer: dict[str, Any] = {"algorithms": ["HS256"], "keys_file": str(keys), "subscribe": ["/a", "/b"]}
    if change == "less to subscribe":
        issuer["subscribe"] = ["/a"]
    if change == "more to subscribe":
        issuer["subscribe"] = ["/a", "/b", "/c"]
    if change == "audience":
        issuer["audience"] = "us"
    name = "other" if change == "issuer removed" else "ours"
    return {"access": {"mode": "jwt"}, "issuers": {name: issuer}}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("issuer removed", 4002),
        ("key removed", 4002),
        ("audience", 4209),
        ("less to subscribe", 4209),
        ("more to subscribe", None),
        ("nothing", None),
    ],
)
async def test_a_reload_that_narrows_rights_ends_the_connections_that_have_them(
    tmp_path: Path, change: str, code: int | None
) -> None:
    token = jwt.encode({"iss": "ours", "sub": "ann", "exp": EXP}, KEYS[1], "HS256")
    async with (
        testing.node(make_table(tmp_path, "before")) as node,
        asyncio.timeout(DEADLINE_S),
        Peer.live(node.client.host, node.client.port) as peer,
    ):
        await peer.ask({"id": 1, "connect": {"token": token}})
        assert (await peer.ask({"id": 2, "subscribe": "/b"}))["ok"] == "subscribed"
        table = {**testing.FREE_PORTS, **make_table(tmp_path, change)}
        await node.node.reload(build_config(table, {}, {}))
        answer = await peer.ask({"id": 3, "ping": True})
        while code is not None and "close" not in answer:
            answer = await peer.ask({"id": 4, "ping": True})
        assert answer.get("close") == code


async def test_a_client_with_one_token_continues_with_the_rights_that_a_reload_leaves_it(tmp_path: Path) -> None:
    token = jwt.encode({"iss": "ours", "sub": "ann", "exp": EXP}, KEYS[1], "HS256")
    async with (
        testing.node({**make_table(tmp_path, "before"), "node": {"shards": 1}}) as node,
        asyncio.timeout(DEADLINE_S),
        Client(node.url, token=token) as client,
    ):
        stays, goes = client.subscribe("/a"), client.subscribe("/b")
        await stays.joined()
        await goes.joined()
        table = {**testing.FREE_PORTS, **make_table(tmp_path, "less to subscribe")}
        await node.node.reload(build_config(table, {}, {}))
        with pytest.raises(CommandRefused, check=lambda error: error.code == Code.SUBSCRIBE_FORBIDDEN):
            await anext(goes)
        await stays.joined()
        assert client.is_connected
