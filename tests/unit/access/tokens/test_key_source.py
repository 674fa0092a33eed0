"""Fetching keys: one request at a time, cached, and never too old."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

from godwit.access.tokens.key_source import KeySource, read_authorities, read_key_file
from godwit.config.tree import IssuerConfig
from godwit.errors import ConfigInvalid, KeysUnavailable

ISSUER = IssuerConfig(
    "i", algorithms=("EdDSA",), keys_url="https://i/keys", keys_age_ms_max=100_000, refresh_ms_min=10_000
)


class Endpoint:
    """A JWK Set that a test turns off and changes, and a clock."""

    def __init__(self) -> None:
        self.now_s, self.asked, self.is_down = 1000.0, 0, False
        self.gate = asyncio.Event()
        self.gate.set()
        self.rotate("k1")
        self.source = KeySource(ISSUER, fetch=self.fetch, now_s=lambda: self.now_s)

    def rotate(self, *names: str) -> None:
        rows = []
        for name in names:
            public = ed25519.Ed25519PrivateKey.generate().public_key()
            rows.append({**json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(public)), "kid": name})
        self.content = json.dumps({"keys": rows}).encode()

    async def fetch(self, url: str) -> bytes:
        assert url == "https://i/keys"
        self.asked += 1
        await self.gate.wait()
        if self.is_down:
            raise OSError("down")
        return self.content


async def test_many_who_come_at_once_cost_one_fetch_and_one_who_gives_up_takes_nobody_with_it() -> None:
    endpoint = Endpoint()
    endpoint.gate.clear()
    waiting = [asyncio.ensure_future(endpoint.source.keys("k1")) for _ in range(100)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    endpoint.gate.set()
    rings = await asyncio.gather(*waiting[1:])
    assert endpoint.asked == 1 and len({id(ring) for ring in rings}) == 1
    await endpoint.source.keys(None)
    assert endpoint.asked == 1


async def test_an_unknown_key_makes_it_look_again_but_not_often() -> None:
    endpoint = Endpoint()
    first = await endpoint.source.keys("k1")
    for _ in range(50):
        with pytest.raises(KeysUnavailable, match="try again"):  # a true holder of a new key may come meanwhile
            await endpoint.source.keys("forged")
        assert await endpoint.source.keys("k1") is first
    assert endpoint.asked == 1, "strangers cannot make it hammer the issuer"
    endpoint.rotate("k1", "k2")
    endpoint.now_s += 11
    assert (await endpoint.source.keys("k2")).knows("k2") and endpoint.asked == 2


async def test_after_a_wrong_signature_it_looks_again_where_no_look_was_made_for_the_token() -> None:
    endpoint = Endpoint()
    looks = endpoint.source.fetches
    first = await endpoint.source.keys(None)
    assert await endpoint.source.look_again(first, looks) is None, "this look was the token's own"
    with pytest.raises(KeysUnavailable, match="try again"):
        await endpoint.source.look_again(first, endpoint.source.fetches)
    endpoint.rotate("k1")  # another key under the same name
    endpoint.now_s += 11
    newer = await endpoint.source.look_again(first, endpoint.source.fetches)
    assert newer is not None and newer is not first
    assert await endpoint.source.look_again(first, endpoint.source.fetches) is newer
    await endpoint.source.stop()


async def test_a_key_is_withdrawn_when_two_good_looks_in_a_row_do_not_find_it() -> None:
    endpoint = Endpoint()
    endpoint.rotate("k1", "k2")
    gone: list[str] = []
    endpoint.source.on_gone = gone.append
    both = endpoint.content
    keys = (await endpoint.source.keys("k1")).keys

    async def look(content: bytes) -> int:
        endpoint.content = content
        endpoint.now_s += 101
        try:
            return len((await endpoint.source.keys("k1")).keys)
        except KeysUnavailable:
            return 0

    one = json.dumps({"keys": json.loads(both)["keys"][:1]}).encode()
    assert [await look(content) for content in (one, both, one)] == [2, 2, 2] and gone == [], "partial once"
    assert [await look(content) for content in (b'{"keys": []}', b"<html>")] == [0, 0] and gone == [], "no good look"
    assert await look(one) == 1 and gone == [keys[1].fingerprint]
    assert await look(one) == 1 and len(gone) == 1
    await endpoint.source.stop()


async def test_keys_that_have_not_changed_stay_the_same_ring() -> None:
    endpoint = Endpoint()
    first = await endpoint.source.keys("k1")
    endpoint.now_s += 101
    assert await endpoint.source.keys("k1") is first and endpoint.asked == 2


async def test_while_the_endpoint_is_down_known_keys_serve_until_they_are_old_and_then_nobody_comes_in() -> None:
    endpoint = Endpoint()
    await endpoint.source.keys("k1")
    endpoint.is_down = True
    endpoint.now_s += 60
    assert (await endpoint.source.keys("k1")).knows("k1")
    await asyncio.sleep(0)
    assert endpoint.asked == 2, "looked for in the background, before they are old"
    endpoint.now_s += 41
    with pytest.raises(KeysUnavailable):
        await endpoint.source.keys("k1")
    for _ in range(20):
        with pytest.raises(KeysUnavailable):
            await endpoint.source.keys("k1")
    assert endpoint.asked == 3
    endpoint.is_down = False
    endpoint.now_s += 11
    assert (await endpoint.source.keys("k1")).knows("k1")


@pytest.mark.parametrize("content", [b"", b"<html>", b'{"keys": []}', b"[" * 100_000, b'{"keys": [{"kty": "oct"}]}'])
async def test_an_endpoint_that_answers_nonsense_is_an_endpoint_that_is_down(content: bytes) -> None:
    endpoint = Endpoint()
    endpoint.content = content
    with pytest.raises(KeysUnavailable):
        await endpoint.source.keys("k1")
    await endpoint.source.stop()


def test_a_file_is_read_before_the_node_starts(tmp_path: object) -> None:
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == 'issuers."i".keys_file'):
        read_key_file(IssuerConfig("i", keys_file=f"{tmp_path}/none"))
    file = f"{tmp_path}/secret"
    with open(file, "w") as opened:
        opened.write("s" * 64)
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == 'issuers."i".keys_file'):
        read_key_file(IssuerConfig("i", keys_file=file, algorithms=("RS256",)))


def test_a_file_of_authorities_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("no certificate")
    for file, problem in ((str(empty), "holds no certificate"), (str(tmp_path / "gone.pem"), "cannot be read")):
        issuer = replace(ISSUER, keys_authorities_file=file)
        with pytest.raises(ConfigInvalid, match=f'issuers."i".keys_authorities_file.*{problem}'):
            read_authorities(issuer)
    assert read_authorities(ISSUER) is None
