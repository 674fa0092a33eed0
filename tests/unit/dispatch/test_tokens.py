"""The signing key: kept between starts; tokens of other keys are refused."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from godwit.dispatch import tokens
from godwit.dispatch.errors import RequestRefused
from godwit.dispatch.tokens import SigningKey
from godwit.errors import ConfigInvalid


async def test_a_token_is_for_one_inbox_and_for_a_time(tmp_path: Path) -> None:
    now = 1_000_000_000.0
    key = SigningKey(tmp_path / "key", lambda: now)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    again = SigningKey(tmp_path / "key")
    assert again.key_id == key.key_id and again.key_set == key.key_set
    token, expires_ms = again.sign_receiver("shop", "a/b", 60_000)
    assert again.read_receiver(token) == ("shop", "a/b")
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims["sub"] == "shop/a%2Fb" and claims["exp"] * 1000 == expires_ms
    assert claims["permissions"] == {"allow": {"subscribe": ["/$inbox/shop/a%2Fb", "/$inbox/shop/a%2Fb/**"]}}
    expired, _ = key.sign_receiver("shop", "ann", 60_000)
    other, _ = SigningKey(tmp_path / "other").sign_receiver("shop", "ann", 60_000)
    for bad in (expired, other, await again.sign_service(), "", token + "x"):
        with pytest.raises(RequestRefused):
            again.read_receiver(bad)


def test_a_token_is_verified_once_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = time.time()
    key = SigningKey(tmp_path / "key", lambda: now_s)
    token, expires_ms = key.sign_receiver("shop", "ann", 60_000)
    verified: list[str] = []
    decode = jwt.decode

    def count(text: str, *given: Any, **more: Any) -> Any:
        verified.append(text)
        return decode(text, *given, **more)

    monkeypatch.setattr(jwt, "decode", count)
    assert [key.read_receiver(token) for _ in range(3)] == [("shop", "ann")] * 3 and verified == [token]
    now_s = expires_ms / 1000
    key.read_receiver(token)
    assert verified == [token, token], "by the clock of the key it has ended: its signature and end are looked at again"
    for _ in range(2):
        with pytest.raises(RequestRefused):
            key.read_receiver(token + "x")
    assert len(verified) == 4, "one that is refused is not remembered"


def test_the_tokens_that_are_remembered_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "KNOWN_MAX", 3)
    key = SigningKey(tmp_path / "key")
    for number in range(5):
        key.read_receiver(key.sign_receiver("shop", f"r{number}", 60_000)[0])
    assert len(key._known) == 3


def test_a_file_that_holds_no_such_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("nonsense")
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "node.data_directory"):
        SigningKey(tmp_path / "key")
