"""A template that uses `receiver` is rendered for each receiver on every channel; an error fails only that receiver's deliveries."""

from __future__ import annotations

import asyncio
import base64
import email
import email.policy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from godwit.dispatch.content.personal import Form, Person, render_people
from godwit.dispatch.content.renderer import Renderer
from godwit.dispatch.content.templates import Parts
from tests.dispatch.conftest import Running, running
from tests.dispatch.email.test_email import Server, mailing
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_policies import wait_for_row
from tests.dispatch.test_webhook import LOOPBACK, endpoint

pytest.importorskip("liquid", reason="needs the extra `dispatch`")
DEADLINE_S = 90
GREETING = {
    "locales": {
        "default": {
            "title": "Hi {{ receiver.attributes.name }}",
            "email": {"subject": "{{ receiver.id }}: {{ offer }}"},
        },
        "es": {"title": "Hola {{ receiver.attributes.name }}"},
    }
}
FAST = {"dispatch_limits": {"sweep_ms": 100}}
NOTE = {"to": {"receivers": ["ann", "bob", "eve"]}, "content": {"template": "hi", "data": {"offer": "50 %"}}}


async def put_people(both: Running) -> None:
    assert (await both.api("PUT", "/v1/templates/hi", GREETING))[1]["variables"] == ["offer", "receiver"]
    await both.api("PUT", "/v1/receivers/ann", {"locale": "es-MX", "attributes": {"name": "Ann"}})
    await both.api("PUT", "/v1/receivers/bob", {"attributes": {"name": "Bob"}})
    await both.api("PUT", "/v1/receivers/eve", {})  # without a name


async def read_titles(both: Running, name: str) -> list[str]:
    _, answer = await both.api("GET", "/v1/inbox", key=await both.make_token(name))
    return [item["content"].get("title") for item in answer["items"]]


def find_in_files(folder: Path, text: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text in path.read_bytes()]


async def test_each_inbox_has_content_of_its_own_and_one_without_fails_until_it_renders(
    tmp_path: Path, runtime: Path
) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await put_people(both)
        status, answer = await both.api("PUT", "/v1/notifications/n1", {**NOTE, "content": {"template": "hi"}})
        assert (status, answer["code"]) == (422, 4328), "data lacks the offer"
        await both.api("PUT", "/v1/notifications/n1", NOTE)
        assert (await wait_for(both, "n1"))["counts"] == {"inbox": {"sent": 2, "failed": 1}}
        assert await read_titles(both, "ann") == ["Hola Ann"]
        assert await read_titles(both, "bob") == ["Hi Bob"]
        assert await read_titles(both, "eve") == []
        _, answer = await both.api("GET", "/v1/notifications/n1/deliveries?state=failed")
        [row] = answer["deliveries"]
        assert (row["receiver"], row["reason"]) == ("eve", "content") and "name" in row["ref"]
        await both.api("PATCH", "/v1/receivers/eve", {"attributes": {"name": "Eve"}})
        await both.api("PATCH", "/v1/receivers/bob", {"attributes": {"name": "Robert"}})
        assert (await both.api("POST", "/v1/dead-letters/replay", {"notification": "n1"}))[1]["replayed"] == 1
        await wait_for_row(both, "n1", ("eve", "inbox"), "sent")
        assert await read_titles(both, "eve") == ["Hi Eve"]
        assert await read_titles(both, "bob") == ["Hi Bob"], "what was sent stays as it was"


async def test_a_dry_run_renders_for_the_receivers_and_says_for_whom_it_fails(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await put_people(both)
        _, answer = await both.api("POST", "/v1/notifications/check", NOTE)
        [failure] = answer["content"].pop("failures")
        assert answer["content"] == {"rendered": 2, "failed": 1}
        assert failure["receiver"] == "eve" and "name" in failure["detail"]
        fresh = {"id": "eve", "attributes": {"name": "Eve"}}
        _, answer = await both.api("POST", "/v1/notifications/check", {**NOTE, "to": {"receiver": fresh}})
        assert answer["content"] == {"rendered": 1, "failed": 0, "failures": []}
        assert (await both.api("GET", "/v1/receivers/eve"))[1].get("attributes", {}) == {}, "a dry run stores nothing"


async def test_a_dry_run_for_a_bare_address_or_a_new_receiver_says_what_would_be_sent(
    tmp_path: Path, runtime: Path
) -> None:
    """listmonk's issues 2814 and 2204: a template for somebody who is not stored."""
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, Server()) as both:
        await both.api("PUT", "/v1/templates/hi", {"locales": {"default": {"title": "Hi {{ receiver.id }}"}}})
        plain = {"title": "hi"}
        address = {"address": {"channel": "email", "value": "bob@mail.example"}}
        for to, channels in ((address, {"email": {"send": 1}}), ({"receiver": {"id": "new"}}, {"inbox": {"send": 1}})):
            _, answer = await both.api("POST", "/v1/notifications/check", {"to": to, "content": plain})
            assert answer["unknown"] == [] and answer["receivers_looked_at"] == 1
            assert {name: counts for name, counts in answer["channels"].items() if counts} == channels
        body = {"to": address, "content": {"template": "hi"}}
        _, answer = await both.api("POST", "/v1/notifications/check", body)
        assert (answer["content"]["rendered"], answer["content"]["failed"]) == (0, 1), "a bare address has no id"
        assert [failure["receiver"] for failure in answer["content"]["failures"]] == [None]
        await both.api("PUT", "/v1/notifications/n1", body)
        assert (await wait_for(both, "n1"))["counts"] == {"email": {"failed": 1}}


async def test_a_failed_delivery_is_retried_by_its_id_with_what_the_receiver_has_now(
    tmp_path: Path, runtime: Path
) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await put_people(both)
        await both.api("PUT", "/v1/notifications/n1", {**NOTE, "to": {"receiver": "eve"}})
        await wait_for_row(both, "n1", ("eve", "inbox"), "failed")
        _, answer = await both.api("GET", "/v1/notifications/n1/deliveries")
        again = f"/v1/deliveries/{answer['deliveries'][0]['id']}/retry"
        assert (await both.api("POST", again))[0] == 202
        await wait_for_row(both, "n1", ("eve", "inbox"), "failed")
        await both.api("PATCH", "/v1/receivers/eve", {"attributes": {"name": "Eve"}})
        assert (await both.api("POST", again))[0] == 202
        await wait_for_row(both, "n1", ("eve", "inbox"), "sent")


async def test_webhooks_and_e_mails_have_the_receivers_content(tmp_path: Path, runtime: Path) -> None:
    taken: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        taken.put_nowait(await request.json())
        return web.Response()

    server = Server()
    async with (
        asyncio.timeout(DEADLINE_S),
        endpoint(take) as url,
        mailing(tmp_path, server, {"dispatch": LOOPBACK["dispatch"]}) as both,
    ):
        await put_people(both)
        for name in ("ann", "bob"):
            mail = {"channel": "email", "value": f"{name}@mail.example"}
            await both.api("PUT", f"/v1/receivers/{name}/addresses/mail", mail)
            await both.api("PUT", f"/v1/receivers/{name}/addresses/hook", {"channel": "webhook", "value": url})
        note = {**NOTE, "override": {"email": {"reply_to": "shop@shop.example"}}}
        await both.api("PUT", "/v1/notifications/n1", note)
        counts = (await wait_for(both, "n1"))["counts"]
        assert counts == {"inbox": {"sent": 2, "failed": 1}, "webhook": {"sent": 2}, "email": {"sent": 2}}
        titles = {json.dumps(taken.get_nowait()) for _ in range(2)}
        assert any("Hola Ann" in one for one in titles) and any("Hi Bob" in one for one in titles)
    mails = [email.message_from_bytes(raw, policy=email.policy.default) for raw in server.taken]
    assert {one["Reply-To"] for one in mails} == {"shop@shop.example"}
    assert {str(one["To"]): str(one["Subject"]) for one in mails} == {
        "ann@mail.example": "Hola Ann",  # the part in Spanish has no subject of its own
        "bob@mail.example": "bob: 50 %",
    }


async def test_a_template_that_mostly_does_not_render_pauses_before_anything_is_sent(
    tmp_path: Path, runtime: Path
) -> None:
    count = 120
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await put_people(both)
        await both.api("PUT", "/v1/groups/news")
        for number in range(count):
            await both.api("PUT", f"/v1/receivers/r{number}", {})
            await both.api("PUT", f"/v1/groups/news/subscriptions/r{number}")
        await both.api("PUT", "/v1/notifications/n1", {**NOTE, "to": {"group": "news"}})
        answer = await wait_for(both, "n1", "paused")
        assert answer["paused"] == ["template"] and answer["counts"] == {}
        for number in range(count - 2):
            await both.api("PATCH", f"/v1/receivers/r{number}", {"attributes": {"name": f"R{number}"}})
        assert (await both.api("POST", "/v1/notifications/n1/resume"))[1]["resumed"] == ["template"]
        assert (await wait_for(both, "n1"))["counts"] == {"inbox": {"sent": count - 2, "failed": 2}}


async def test_the_rendered_content_of_an_erased_receiver_is_in_no_file(tmp_path: Path, runtime: Path) -> None:
    name = "Anneliese-Unmistakable"
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await put_people(both)
        await both.api("PATCH", "/v1/receivers/ann", {"attributes": {"name": name}})
        before = (await both.api("GET", "/v1/tenants/default"))[1]["usage"]["stored_bytes"]
        await both.api("PUT", "/v1/notifications/n1", NOTE)
        await wait_for(both, "n1")
        assert await read_titles(both, "ann") == [f"Hola {name}"]
        stored = (await both.api("GET", "/v1/tenants/default"))[1]["usage"]["stored_bytes"]
        assert (await both.api("DELETE", "/v1/receivers/ann"))[0] == 204
        assert before < (await both.api("GET", "/v1/tenants/default"))[1]["usage"]["stored_bytes"] < stored
        assert (await wait_for(both, "n1"))["counts"]["inbox"]["sent"] == 2
    assert not find_in_files(tmp_path, name.encode())


async def test_a_preview_shows_what_a_receiver_would_get(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await put_people(both)
        path, data = "/v1/templates/hi/preview", {"offer": "1"}
        _, answer = await both.api("POST", path, {"data": data, "receiver": "ann"})
        assert (answer["locale"], answer["content"]["title"]) == ("es", "Hola Ann")
        _, answer = await both.api(
            "POST", path, {"data": {**data, "receiver": {"id": "x", "attributes": {"name": "X"}}}}
        )
        assert answer["content"]["title"] == "Hi X"
        for wrong, code in (({"data": data}, 4328), ({"data": data, "receiver": "no"}, 4306)):
            assert (await both.api("POST", path, wrong))[1]["code"] == code
        assert (await both.api("POST", path, {"data": data, "receiver": "eve"}))[1]["code"] == 4329


async def test_a_receiver_in_data_is_what_the_template_names(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await put_people(both)
        data = {"offer": "1", "receiver": {"id": "all", "attributes": {"name": "all"}}}
        await both.api("PUT", "/v1/notifications/n1", {**NOTE, "content": {"template": "hi", "data": data}})
        assert (await wait_for(both, "n1"))["counts"] == {"inbox": {"sent": 3}}
        assert await read_titles(both, "eve") == ["Hi all"]


async def test_pages_end_in_time_and_a_text_that_takes_too_long_is_its_receivers_own_fault() -> None:
    slow = "{% if receiver.id == 'r7' %}{% for a in (1..9999) %}{{ receiver.id | append: 'x' }}{% endfor %}{% endif %}{{ receiver.id }}"
    heavy = (
        "{% if receiver.id == 'r7' %}"
        + "{{ (1..9999) | join: ',' | split: ',' | sort | join: '-' }}" * 40
        + "{% endif %}"
    )
    people = [Person(number, f"r{number}", b"{}") for number in range(300)]
    renderer = Renderer()
    try:
        async with asyncio.timeout(DEADLINE_S):
            done: list[Any] = []
            pages: Counter[int] = Counter()
            while len(done) < len(people):
                page = await render_people(
                    renderer, Form({"default": Parts(title=heavy + slow)}), people[len(done) :], 0.0
                )
                pages[len(page)] += 1
                done += page
    finally:
        await renderer.close()
    assert [one.rid for one in done] == [person.rid for person in people]
    assert [one.rid for one in done if one.failure] == [7]
    assert sum(pages.values()) > 1, "a page without time takes what one request takes"


async def test_long_texts_of_other_scripts_are_rendered_in_several_requests() -> None:
    long = Parts(title="{{ receiver.id }}", body="ж" * 45_000 + "\u0001" * 4_000)
    people = [Person(number, f"r{number}", b"{}") for number in range(150)]
    renderer = Renderer()
    try:
        async with asyncio.timeout(DEADLINE_S):
            done: list[Any] = []
            while len(done) < len(people):
                done += await render_people(renderer, Form({"default": long}), people[len(done) :])
    finally:
        await renderer.close()
    assert [one.rid for one in done] == list(range(150)) and not any(one.failure for one in done)


async def test_a_default_beside_the_receivers_name_is_for_those_without_one(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, FAST) as both, asyncio.timeout(DEADLINE_S):
        await put_people(both)
        friendly = {"locales": {"default": {"title": "Hi {{ receiver.attributes.name | default: 'friend' }}"}}}
        assert (await both.api("PUT", "/v1/templates/friendly", friendly))[1]["variables"] == ["receiver"]
        await both.api("PUT", "/v1/notifications/n1", {**NOTE, "content": {"template": "friendly"}})
        assert (await wait_for(both, "n1"))["counts"] == {"inbox": {"sent": 3}}
        assert (await read_titles(both, "bob"), await read_titles(both, "eve")) == (["Hi Bob"], ["Hi friend"])


async def test_what_all_receivers_have_in_common_is_stored_once_and_the_quota_holds(
    tmp_path: Path, runtime: Path
) -> None:
    server = Server()
    file = {"name": "a.txt", "content": base64.b64encode(b"z" * 300_000).decode()}
    async with asyncio.timeout(DEADLINE_S), mailing(tmp_path, server) as both:
        await put_people(both)
        for name in ("ann", "bob"):
            mail = {"channel": "email", "value": f"{name}@mail.example"}
            await both.api("PUT", f"/v1/receivers/{name}/addresses/mail", mail)
        actions = [{"id": "ok", "label": "OK"}]
        note = {
            "to": {"receivers": ["ann", "bob"]},
            "content": {"template": "hi", "data": {"offer": "1"}, "actions": actions},
            "override": {"email": {"attachments": [file]}},
        }
        await both.api("PUT", "/v1/notifications/n1", note)
        assert (await wait_for(both, "n1"))["counts"]["email"] == {"sent": 2}
        assert all(b"a.txt" in raw for raw in server.taken)
        _, answer = await both.api("GET", "/v1/inbox", key=await both.make_token("ann"))
        assert answer["items"][0]["content"] == {"title": "Hola Ann", "data": {"offer": "1"}, "actions": actions}
        stored = (await both.api("GET", "/v1/tenants/default"))[1]["usage"]["stored_bytes"]
        assert 400_000 < stored < 500_000, "the attachment once"
        long = {"locales": {"default": {"title": "{{ receiver.id }}" + "x" * 40_000}}}
        await both.api("PUT", "/v1/templates/long", long)
        await both.api("PUT", "/v1/tenants/default", {"quotas": {"stored_bytes": stored + 60_000}})
        full = {"to": {"receivers": ["ann", "bob"]}, "content": {"template": "long"}}
        await both.api("PUT", "/v1/notifications/n2", full)
        assert (await wait_for(both, "n2"))["counts"]["inbox"] == {"failed": 2}
        _, answer = await both.api("GET", "/v1/notifications/n2/deliveries?channel=inbox")
        assert all("may store" in row["ref"] for row in answer["deliveries"])
