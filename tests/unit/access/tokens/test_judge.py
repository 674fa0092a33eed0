"""The cache of verified tokens is bounded."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jwt

from godwit.access.tokens import TokenAuthorizer
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
