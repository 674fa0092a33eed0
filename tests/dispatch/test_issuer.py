"""The built-in issuer on a real node: who may publish and watch on the subjects of dispatch, in every access mode."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from godwit import testing
from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule
from godwit.config import build_config
from godwit.errors import ConfigInvalid
from tests.hostile.peer import Peer

DEADLINE_S = 60
EXP = 4_000_000_000
INBOX = "/$inbox/shop/ann"
SECRET = "one-secret-that-is-long-enough-for-hs256"
KEY = Ed25519PrivateKey.generate()
EVERYTHING = ["/**", "/$inbox/**", "/$dispatch/**"]


class Impostor(Authorizer):
    """Grants everything, in the name that the token asks for."""

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        rules = [Rule.allow(pattern) for pattern in EVERYTHING]
        return Grant(question.token or "nobody", rules, source="godwit-dispatch")


def sign(key: Ed25519PrivateKey = KEY, subject: str = "shop/ann", **patterns: list[str]) -> str:
    """A token of dispatch, which may `publish` and `subscribe` to the patterns given."""
    claims = {"iss": "godwit-dispatch", "sub": subject, "exp": EXP, "permissions": {"allow": patterns}}
    return jwt.encode(claims, key, "EdDSA")


def make_table(folder: Path, mode: str) -> dict[str, Any]:
    keys = folder / "dispatch.pem"
    keys.write_bytes(KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    table: dict[str, Any] = {"access": {"mode": mode}, "dispatch": {"token_keys_file": str(keys)}}
    if mode == "basic":
        table["access"]["publish_tokens"] = [SECRET]
    if mode == "custom":
        table["access"]["authorizer"] = f"{__name__}:Impostor"
    if mode == "jwt":
        (folder / "secrets").write_text(SECRET)
        issuer = {"algorithms": ["HS256"], "keys_file": str(folder / "secrets")}
        table["issuers"] = {"ours": {**issuer, "subscribe": EVERYTHING, "publish": EVERYTHING}}
    return table


def make_foreign(mode: str, subject: str = "ann") -> str:
    """A token that the mode's own judge believes."""
    if mode == "jwt":
        return jwt.encode({"iss": "ours", "sub": subject, "exp": EXP}, SECRET, "HS256")
    return SECRET if mode == "basic" else subject


async def publish(peer: Peer, subject: str) -> object:
    answer = await peer.ask({"id": 7, "publish": subject, "content": 1})
    return answer.get("ok") or answer.get("error")


@pytest.mark.parametrize("mode", ["none", "basic", "jwt", "custom"])
async def test_only_a_token_of_dispatch_publishes_and_watches_there(tmp_path: Path, mode: str) -> None:
    async with (
        testing.node(make_table(tmp_path, mode)) as node,
        asyncio.timeout(DEADLINE_S),
        Peer.live(node.client.host, node.client.port) as service,
        Peer.live(node.client.host, node.client.port) as receiver,
        Peer.live(node.client.host, node.client.port) as other,
    ):
        token = sign(subject="/service", both=["/$inbox/**", "/$dispatch/**"])
        assert "ok" in await service.ask({"id": 1, "connect": {"token": token}})
        assert "ok" in await receiver.ask({"id": 1, "connect": {"token": sign(subscribe=[INBOX])}})
        assert "ok" in await other.ask({"id": 1, "connect": {"token": make_foreign(mode)}})
        assert (await service.ask({"id": 2, "watch": "/$inbox/**"}))["ok"] == "watching"
        assert (await other.ask({"id": 2, "watch": "/$inbox/**"}))["error"] == 4115
        assert (await other.ask({"id": 3, "subscribe": "/$inbox/**"}))["error"] == 4113
        assert (await other.ask({"id": 4, "subscribe": INBOX}))["error"] == 4113
        assert (await receiver.ask({"id": 4, "subscribe": INBOX}))["ok"] == "subscribed"
        assert (await receiver.ask({"id": 5, "subscribe": "/$inbox/shop/bob"}))["error"] == 4113
        for subject in (INBOX, "/$dispatch/shop/notifications/7"):
            assert await publish(service, subject) == "published"
            assert await publish(receiver, subject) == 4114
            assert await publish(other, subject) == 4114
        assert await publish(service, "/$node/n/now") == 4101
        # a token of dispatch has the rights of a client without one
        assert await publish(receiver, "/a") == ("published" if mode == "none" else 4114)


@pytest.mark.parametrize("mode", ["jwt", "custom"])
async def test_nobody_else_is_called_as_dispatch_calls_its_receivers(tmp_path: Path, mode: str) -> None:
    async with (
        testing.node(make_table(tmp_path, mode)) as node,
        asyncio.timeout(DEADLINE_S),
        Peer.live(node.client.host, node.client.port) as peer,
    ):
        token = make_foreign(mode, "godwit-dispatch:shop/ann")
        assert (await peer.ask({"id": 1, "connect": {"token": token}}))["close"] == 4004


async def test_a_token_that_only_says_it_is_of_dispatch_is_refused(tmp_path: Path) -> None:
    async with (
        testing.node(make_table(tmp_path, "none")) as node,
        asyncio.timeout(DEADLINE_S),
        Peer.live(node.client.host, node.client.port) as peer,
    ):
        forged = sign(Ed25519PrivateKey.generate(), both=EVERYTHING)
        assert (await peer.ask({"id": 1, "connect": {"token": forged}}))["close"] == 4002


def test_no_configured_issuer_takes_the_name(tmp_path: Path) -> None:
    table = make_table(tmp_path, "jwt")
    issuer = table["issuers"]["ours"]
    for issuers in ({"godwit-dispatch": issuer}, {"ours": {**issuer, "identity_prefix": "godwit-dispatch:"}}):
        with pytest.raises(ConfigInvalid, match="godwit-dispatch"):
            build_config({**table, "issuers": issuers}, {}, {})
    keys = {"token_keys_url": "https://dispatch.example/v1/keys.json", **table["dispatch"]}
    with pytest.raises(ConfigInvalid, match="token_keys_file"):
        build_config({**table, "dispatch": keys}, {}, {})
    with pytest.raises(ConfigInvalid, match="https"):
        build_config({**table, "dispatch": {"token_keys_url": "http://dispatch.example/keys"}}, {}, {})
