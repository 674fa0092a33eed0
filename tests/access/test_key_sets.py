"""An issuer's key set over HTTP, on a real node: slow, rotated, taken back, down and up again."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec

from godwit import testing
from godwit.config import build_config
from tests.authority import Authority
from tests.hostile.peer import Peer

DEADLINE_S = 60
ISSUER = "https://login.example"


class Login:
    """The signer of tokens: its keys by name, those that it publishes, and how it answers."""

    def __init__(self) -> None:
        self.keys = {name: ec.generate_private_key(ec.SECP256R1()) for name in ("one", "two")}
        self.shown = ["one"]
        self.asked, self.status = 0, 200
        self.gate, self.came = asyncio.Event(), asyncio.Event()

    async def answer(self, _: web.Request) -> web.Response:
        self.asked += 1
        self.came.set()
        await self.gate.wait()
        rows = []
        for name in self.shown:
            row = jwt.algorithms.ECAlgorithm.to_jwk(self.keys[name].public_key())
            rows.append({**json.loads(row), "kid": name})
        return web.json_response({"keys": rows}, status=self.status)

    def token(self, name: str) -> str:
        claims = {"iss": ISSUER, "sub": "ann", "exp": time.time() + 600}
        return jwt.encode(claims, self.keys[name], "ES256", headers={"kid": name})


@asynccontextmanager
async def listening(login: Login, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/keys", login.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}/keys"
    finally:
        login.gate.set()
        await runner.cleanup()


async def connect(node: testing.RunningNode, token: str) -> int:
    """0 if the connection is accepted, otherwise the code received."""
    async with Peer.live(node.client.host, node.client.port) as peer:
        reply = await peer.ask({"id": 1, "connect": {"token": token}})
        return 0 if reply.get("ok") == "connected" else int(reply.get("close", reply.get("error", -1)))


async def test_keys_are_asked_for_once_rotated_taken_back_and_missed_when_they_are_old() -> None:
    login = Login()
    async with asyncio.timeout(DEADLINE_S), listening(login) as url:
        rules = {"keys_url": url, "algorithms": ["ES256"], "keys_age_ms_max": 1_000, "refresh_ms_min": 100}
        settings: dict[str, Any] = {
            "access": {"mode": "jwt", "authorizer_timeout_ms": 30_000},
            "issuers": {ISSUER: rules},
            "limits": {"token_failures_per_minute_per_address_max": 0},
        }
        async with testing.node(settings) as node:
            waiting = [asyncio.create_task(connect(node, login.token("one"))) for _ in range(30)]
            await login.came.wait()
            login.gate.set()
            assert await asyncio.gather(*waiting) == [0] * 30
            assert login.asked == 1, "who comes meanwhile waits for the same answer"

            login.shown = ["one", "two"]
            while await connect(node, login.token("two")) != 0:  # not before it may look again
                pass
            assert await connect(node, login.token("one")) == 0, "both serve while keys change"
            login.shown = ["two"]
            while (code := await connect(node, login.token("one"))) in (0, 4210):  # until two looks did not find it
                pass
            assert code == 4002 and await connect(node, login.token("two")) == 0

            login.status = 503
            while (code := await connect(node, login.token("two"))) == 0:
                pass
            assert code == 4210, "nobody is let in by keys that are too old, and may try again"
            login.status = 200
            while await connect(node, login.token("two")) != 0:
                pass


async def test_keys_come_over_tls_from_a_server_whose_certificate_is_trusted_and_from_no_other(tmp_path: Path) -> None:
    ours, theirs, login = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs"), Login()
    login.gate.set()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*ours.issue("127.0.0.1"))
    async with asyncio.timeout(DEADLINE_S), listening(login, tls) as url:
        for authorities, code, asked in (("", 4210, 0), (str(theirs.file), 4210, 0), (str(ours.file), 0, 1)):
            rules = {"keys_url": url, "algorithms": ["ES256"], "keys_authorities_file": authorities}
            async with testing.node({"access": {"mode": "jwt"}, "issuers": {ISSUER: rules}}) as node:
                assert await connect(node, login.token("one")) == code, authorities
            assert login.asked == asked


async def test_a_token_that_is_being_judged_at_a_reload_gets_the_rights_of_the_new_configuration() -> None:
    login = Login()
    async with asyncio.timeout(DEADLINE_S), listening(login) as url:
        rules: dict[str, Any] = {"keys_url": url, "algorithms": ["ES256"], "subscribe": ["/a", "/b"]}
        settings: dict[str, Any] = {
            "access": {"mode": "jwt", "authorizer_timeout_ms": 30_000},
            "issuers": {ISSUER: rules},
        }
        async with testing.node(settings) as node, Peer.live(node.client.host, node.client.port) as peer:
            connecting = asyncio.create_task(peer.ask({"id": 1, "connect": {"token": login.token("one")}}))
            await login.came.wait()
            less = {**testing.FREE_PORTS, **settings, "issuers": {ISSUER: {**rules, "subscribe": ["/a"]}}}
            await node.node.reload(build_config(less, {}, {}))
            login.gate.set()
            assert (await connecting)["ok"] == "connected"
            assert (await peer.ask({"id": 2, "subscribe": "/a"}))["ok"] == "subscribed"
            assert (await peer.ask({"id": 3, "subscribe": "/b"}))["error"] == 4113


async def test_holders_of_a_withdrawn_key_are_asked_for_another_token() -> None:
    login = Login()
    login.gate.set()
    async with asyncio.timeout(DEADLINE_S), listening(login) as url:
        rules = {"keys_url": url, "algorithms": ["ES256"], "keys_age_ms_max": 1_000, "refresh_ms_min": 100}
        settings: dict[str, Any] = {"access": {"mode": "jwt"}, "issuers": {ISSUER: rules}}
        async with testing.node(settings) as node, Peer.live(node.client.host, node.client.port) as peer:
            login.shown = ["one", "two"]
            assert (await peer.ask({"id": 1, "connect": {"token": login.token("one")}}))["ok"] == "connected"
            login.shown = ["two"]
            heard = asyncio.create_task(peer.hear())
            while not heard.done():
                await connect(node, login.token("two"))  # somebody comes, and the keys are looked at
            reply = await heard
            assert reply["notice"] == "token_expiring" and 0 < reply["in_ms"] <= 60_000
            assert (await peer.ask({"id": 3, "connect": {"token": login.token("two")}}))["ok"] == "connected"
