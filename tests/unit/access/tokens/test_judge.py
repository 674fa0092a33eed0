"""Verified tokens are cached within bounds, and withdrawn keys are noticed."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

from godwit.access.tokens import TokenAuthorizer
from godwit.access.tokens.verifier import TokenRefused
from godwit.config.tree import IssuerConfig

SECRET, NAME = b"s" * 64, "https://login.example"


def make_token(identity: str, **claims: Any) -> str:
    return jwt.encode({"iss": NAME, "sub": identity, "exp": int(time.time()) + 600, **claims}, SECRET, "HS256")


async def test_verified_tokens_are_remembered_within_a_bound_of_bytes(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(SECRET)
    trusted = IssuerConfig(NAME, algorithms=("HS256",), keys_file=str(tmp_path / "key"))
    authorizer = TokenAuthorizer((trusted,), verified_tokens_bytes_max=1_000_000)
    rules = {"allow": {"both": [f"/{number}" for number in range(1_000)]}}
    for number in range(10):
        await authorizer.judge(make_token(f"wide-{number}", permissions=rules))
    assert 3 <= authorizer.remembered <= 5, "each of a thousand rules takes 200 bytes and more"
    for number in range(20):
        await authorizer.judge(make_token(f"narrow-{number}"))
    assert authorizer.remembered >= 20
    await authorizer.stop()


@pytest.mark.parametrize("changed", [{"subscribe": ("/more",)}, {"keys_authorities_file": "other.pem"}])
async def test_a_key_that_is_withdrawn_after_a_reload_is_noticed(changed: dict[str, Any]) -> None:
    """The reload changes the table of the issuer and not its URL; the keys that were fetched before stay known."""
    pairs = {name: ed25519.Ed25519PrivateKey.generate() for name in ("old", "new")}
    rows = {
        name: {**json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(pair.public_key())), "kid": name}
        for name, pair in pairs.items()
    }
    shown = ["old", "new"]

    async def fetch(_: str) -> bytes:
        return json.dumps({"keys": [rows[name] for name in shown]}).encode()

    def sign(name: str, key_id: str) -> str:
        claims = {"iss": "i", "sub": "ann", "exp": time.time() + 3600}
        return jwt.encode(claims, pairs[name], algorithm="EdDSA", headers={"kid": key_id})

    issuer = IssuerConfig("i", ("EdDSA",), keys_url="https://i/keys", keys_age_ms_max=100_000, refresh_ms_min=0)
    authorizer = TokenAuthorizer((issuer,), fetch=fetch)
    withdrawn: list[str] = []
    authorizer.on_withdrawn = withdrawn.append
    try:
        grant = await authorizer.judge(sign("old", "old"))
        authorizer.adopt(TokenAuthorizer((replace(issuer, **changed),), fetch=fetch))
        assert authorizer.take_withdrawn() == []
        shown.remove("old")
        for _ in range(2):  # an unknown key id causes a fetch
            with pytest.raises(TokenRefused):
                await authorizer.judge(sign("new", "unknown"))
        assert withdrawn == [grant.source]
        await authorizer.judge(sign("new", "new"))
        with pytest.raises(TokenRefused):
            await authorizer.judge(sign("old", "old"))
    finally:
        await authorizer.stop()
