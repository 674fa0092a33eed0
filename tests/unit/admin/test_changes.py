"""Requests to the admin port that change something are checked like all input."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from godwit import testing
from godwit.testing.fake_engine import open_fake_engine

TOKEN = "an-admin-token-of-length"


@pytest.fixture
async def http() -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        testing.node({"admin": {"token": TOKEN}}, open_engine=open_fake_engine) as node,
        aiohttp.ClientSession(headers=headers) as session,
    ):
        yield session, node.admin_url


@pytest.mark.parametrize(
    ("body", "media", "status"),
    [
        (b'{"identity":"a"}', "application/json", 201),
        (b'{"identity":"a","until_ms":null}', "application/json", 201),
        (b'{"identity":"a"}', "text/plain", 415),
        (b'{"identity":"a"}', "application/x-www-form-urlencoded", 415),
        (b"{", "application/json", 400),
        (b"[" * 10_000, "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{}", "application/json", 400),
        (b'{"identity":5}', "application/json", 400),
        (b'{"identity":"a","what":1}', "application/json", 400),
        (b'{"identity":"a","until_ms":"soon"}', "application/json", 400),
        (b'{"token_id":"' + b"x" * 1_025 + b'"}', "application/json", 400),
        (b"x" * 20_000, "application/json", 413),
    ],
)
async def test_a_revocation_is_checked(
    http: tuple[aiohttp.ClientSession, str], body: bytes, media: str, status: int
) -> None:
    session, url = http
    async with session.post(f"{url}/v1/revocations", data=body, headers={"Content-Type": media}) as answer:
        assert answer.status == status, await answer.text()


async def test_what_is_wrong_in_a_revocation_is_said_in_the_words_of_the_interface(
    http: tuple[aiohttp.ClientSession, str],
) -> None:
    session, url = http
    for body, said in (
        (b'{"identity":"a","tennant":"acme"}', "unknown field 'tennant'"),
        (b'{"identity":"\\ud800"}', "identity holds half a character"),
    ):
        async with session.post(
            f"{url}/v1/revocations", data=body, headers={"Content-Type": "application/json"}
        ) as answer:
            assert answer.status == 400 and said in (await answer.json())["title"]


async def test_a_misspelt_tenant_lifts_nothing(http: tuple[aiohttp.ClientSession, str]) -> None:
    session, url = http
    async with session.post(f"{url}/v1/revocations", json={"identity": "a"}) as answer:
        assert answer.status == 201
    async with session.delete(f"{url}/v1/revocations", params={"identity": "a", "tennant": "acme"}) as answer:
        assert answer.status == 400
    async with session.get(f"{url}/v1/revocations") as answer:
        assert [row["identity"] for row in (await answer.json())["rows"]] == ["a"]


@pytest.mark.parametrize("path", ["/v1/revocations", "/v1/purge?subject=/a", "/v1/reload"])
async def test_a_strangers_page_and_a_stranger_change_nothing(
    http: tuple[aiohttp.ClientSession, str], path: str
) -> None:
    session, url = http
    for headers, status in (({"Origin": "https://evil.example"}, 403), ({"Authorization": "Bearer wrong"}, 401)):
        async with session.post(url + path, headers=headers, json={"identity": "a"}) as answer:
            assert answer.status == status
    async with session.post(url + path, headers={"Host": "evil.example"}) as answer:
        assert answer.status == 403
