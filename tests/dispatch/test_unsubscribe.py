"""One-click unsubscribe: only POST acts, it ends one category, and a forged or foreign token does nothing."""

from __future__ import annotations

import asyncio
import base64
import re
from pathlib import Path

import pytest

from godwit.dispatch.channels.email.message import make_message
from godwit.dispatch.channels.letter import Letter
from godwit.dispatch.errors import RequestRefused
from godwit.dispatch.model import DeliveryKey, Shipment, Target
from godwit.dispatch.stores.sqlite.deciding import digest_value
from godwit.dispatch.stores.sqlite.receivers import delete_receiver
from godwit.dispatch.tokens import UNSUBSCRIBE, Leaving, SigningKey
from tests.dispatch.conftest import running
from tests.dispatch.email.test_email import Server, mailing, wait_for_state
from tests.dispatch.test_policies import FAST, SANDBOX

DEADLINE_S = 60


def test_a_token_names_an_address_and_a_category_and_no_other_key_signs_it(tmp_path: Path) -> None:
    key, other = SigningKey(tmp_path / "a.key"), SigningKey(tmp_path / "b.key")
    leaving = Leaving("t", "email", "0" * 64, "news")
    token = key.sign_unsubscribe(leaving)
    assert key.read_unsubscribe(token) == leaving and "/" not in token
    for wrong in (
        other.sign_unsubscribe(leaving),
        token[:-4],
        token + "AAAA",
        "x.y",
        "",
        key.sign_receiver("t", "r", 1)[0],
    ):
        with pytest.raises(RequestRefused):
            key.read_unsubscribe(wrong)


def test_an_email_has_the_link_unless_there_is_none() -> None:
    shipment = Shipment(DeliveryKey(1, 2, "email", 3), "t", Target(2, 3, "ann", "ann@example.com"), 1, 10)
    letter = Letter("n", 0, b'{"title": "x"}')
    message = make_message(shipment, letter, "news@shop.example", "https://n.example/u/t").decode()
    assert "List-Unsubscribe: <https://n.example/u/t>" in message
    assert "List-Unsubscribe-Post: List-Unsubscribe=One-Click" in message
    long = f"https://n.example/u/{'t' * 200}"  # what a real token is like: on one line, as it is
    assert (
        f"\r\nList-Unsubscribe: <{long}>\r\n"
        in "\r\n" + make_message(shipment, letter, "news@shop.example", long).decode()
    )
    assert "List-Unsubscribe" not in make_message(shipment, letter, "news@shop.example").decode()


async def test_get_changes_nothing_and_post_ends_the_category_only(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/receivers/ann/addresses/hook", SANDBOX)
        leaving = Leaving("default", "webhook", digest_value("webhook", SANDBOX["value"]), "news")
        token = SigningKey(tmp_path / "dispatch" / "token.key").sign_unsubscribe(leaving)
        path = f"/v1/suppressions/webhook/{SANDBOX['value']}"
        async with both.http.get(f"{both.url}/u/{token}") as answer:
            assert answer.status == 200 and "<form" in await answer.text()
        assert (await both.api("GET", path))[0] == 404, "a scanner that follows the link changes nothing"
        async with both.http.post(f"{both.url}/u/{token}", data="List-Unsubscribe=One-Click") as answer:
            assert answer.status == 200
        _, listed = await both.api("GET", path)
        assert [(one["category"], one["reason"]) for one in listed["suppressions"]] == [("news", "unsubscribed")]
        assert (await both.api("POST", "/u/forged.token"))[1]["code"] == 4332


async def test_a_link_works_when_its_receiver_was_deleted(tmp_path: Path, runtime: Path) -> None:
    """The receiver of a raw address goes with its notification; the person clicks the link months later."""
    settings = {"dispatch": {"public_url": "http://n.example"}}
    server = Server()
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, server, table=settings) as both:
        to = {"address": {"channel": "email", "value": "bob@mail.example"}}
        await both.api("PUT", "/v1/notifications/n1", {"to": to, "content": {"title": "x"}, "category": "news"})
        await wait_for_state(both, "sent")
        link = re.search(rb"List-Unsubscribe: <http://n\.example(/u/[^>]+)>", server.taken[0])
        assert link is not None
        assert both.part is not None
        [(name,)] = await both.part.store.reader.run(
            lambda connection: connection.execute("SELECT name FROM receiver WHERE name LIKE 'address:%'").fetchall()
        )
        assert await both.part.store.writer.run(lambda connection: delete_receiver(connection, "default", name))
        async with both.http.post(both.url + link[1].decode(), data="List-Unsubscribe=One-Click") as answer:
            assert answer.status == 200
        _, listed = await both.api("GET", "/v1/suppressions/email/bob@mail.example")
        assert [(one["category"], one["reason"]) for one in listed["suppressions"]] == [("news", "unsubscribed")]


async def test_a_link_of_an_earlier_version_still_works(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/receivers/ann/addresses/hook", SANDBOX)
        signing = SigningKey(tmp_path / "dispatch" / "token.key")
        payload = base64.urlsafe_b64encode(b'[1,"news"]').rstrip(b"=")
        signature = base64.urlsafe_b64encode(signing.sign_bytes(UNSUBSCRIBE + payload)).rstrip(b"=")
        async with both.http.post(f"{both.url}/u/{payload.decode()}.{signature.decode()}") as answer:
            assert answer.status == 200
        _, listed = await both.api("GET", f"/v1/suppressions/webhook/{SANDBOX['value']}")
        assert [(one["category"], one["reason"]) for one in listed["suppressions"]] == [("news", "unsubscribed")]
