"""Templates and custom webhooks through the API: versions, locales, previews, and bodies that chat services take."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from godwit.dispatch.content import renderer
from tests.dispatch.conftest import Running, running
from tests.dispatch.test_inbox import wait_for
from tests.dispatch.test_policies import wait_for_row
from tests.dispatch.test_tenants import make_key
from tests.dispatch.test_webhook import LOOPBACK, endpoint

pytest.importorskip("liquid", reason="needs the extra `dispatch`")
DEADLINE_S = 60
WELCOME = {"locales": {"default": {"title": "Hi {{ name }}"}, "es": {"title": "Hola {{ name }}"}}}


async def test_each_receiver_gets_the_locale_and_the_version_that_was_named(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path, LOOPBACK) as both, asyncio.timeout(DEADLINE_S):
        status, answer = await both.api("PUT", "/v1/templates/welcome", WELCOME)
        assert (status, answer) == (200, {"id": "welcome", "version": 1, "variables": ["name"]})
        assert (await both.api("PUT", "/v1/templates/welcome", WELCOME))[1]["version"] == 1, (
            "the same is no new version"
        )
        other = {"locales": {"default": {"title": "Bye"}}}
        assert (await both.api("PUT", "/v1/templates/welcome", other))[1]["version"] == 2
        preview = {"data": {"name": "Ann"}, "locale": "es-MX", "version": 1}
        _, answer = await both.api("POST", "/v1/templates/welcome/preview", preview)
        assert (answer["locale"], answer["content"]["title"]) == ("es", "Hola Ann")
        await both.api("PUT", "/v1/receivers/ann", {"locale": "es-MX"})
        await both.api("PUT", "/v1/receivers/bob", {"locale": "de"})
        note = {"to": {"receivers": ["ann", "bob"]}, "content": {"template": "welcome", "version": 1}}
        for wrong, code in (
            (note, 4328),
            ({**note, "content": {"template": "nothing"}}, 4326),
            ({**note, "content": {"template": "welcome", "version": 9}}, 4326),
            ({**note, "content": {"template": "welcome", "title": "x"}}, 4300),
        ):
            status, answer = await both.api("POST", "/v1/notifications", wrong)
            assert (status, answer["code"]) == (422, code)
        note["content"]["data"] = {"name": "Ann"}
        await both.api("PUT", "/v1/notifications/n1", note)
        await wait_for(both, "n1")
        await both.api("DELETE", "/v1/templates/welcome")
        assert (await both.api("PUT", "/v1/notifications/n1", note))[1]["repeat"], "it was accepted with the template"
        status, answer = await both.api("PUT", "/v1/notifications/n1", {**note, "priority": "high"})
        assert (status, answer["code"]) == (422, 4326)
        for name, title in (("ann", "Hola Ann"), ("bob", "Hi Ann")):
            _, answer = await both.api("GET", "/v1/inbox", key=await both.make_token(name))
            assert answer["items"][0]["content"] == {"title": title, "data": {"name": "Ann"}}
        assert (await both.api("GET", "/v1/templates/welcome"))[1]["code"] == 4325


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"preset": "slack"}, {"text": "*A &amp; B*\nHi\n<https://x.example>"}),
        (
            {"preset": "discord"},
            {
                "embeds": [{"title": "A & B", "description": "Hi", "url": "https://x.example"}],
                "allowed_mentions": {"parse": []},
            },
        ),
        (
            {"preset": "ntfy", "fields": {"topic": "t"}},
            {"title": "A & B", "message": "Hi", "click": "https://x.example", "topic": "t"},
        ),
        (
            {"preset": "gotify", "fields": {"priority": 5}},
            {
                "title": "A & B",
                "message": "Hi",
                "priority": 5,
                "extras": {"client::notification": {"click": {"url": "https://x.example"}}},
            },
        ),
        (
            {"body": '{"t": {{ content.title | json }}, "to": {{ receiver | json }}}', "headers": {"X-Key": "k"}},
            {"t": "A & B", "to": "ann"},
        ),
    ],
)
async def test_a_custom_webhook_has_the_services_form(
    tmp_path: Path, runtime: Path, form: dict[str, Any], expected: dict[str, Any]
) -> None:
    taken: asyncio.Queue[tuple[Any, str | None]] = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        taken.put_nowait((await request.json(), request.headers.get("X-Key")))
        return web.Response()

    async with running(tmp_path, LOOPBACK) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        address = {"channel": "webhook", "value": url, "format": form}
        assert (await both.api("PUT", "/v1/receivers/ann/addresses/hook", address))[0] == 200
        content = {"title": "A & B", "body": "Hi", "url": "https://x.example"}
        await both.api("PUT", "/v1/notifications/n1", {"to": {"receiver": "ann"}, "content": content})
        body, key = await taken.get()
        assert body == expected and key == form.get("headers", {}).get("X-Key")
        await wait_for_row(both, "n1", ("ann", "webhook"), "sent")


async def test_a_form_that_cannot_be_is_refused_and_one_that_does_not_render_fails_its_delivery(
    tmp_path: Path, runtime: Path
) -> None:
    async with running(tmp_path, LOOPBACK) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        hook = {"channel": "webhook", "value": "http://127.0.0.1:9/"}
        for form, code in (
            ({}, 4300),
            ({"preset": "slack", "body": "{}"}, 4300),
            ({"body": "{}", "headers": {"Host": "evil"}}, 4300),
            ({"body": "{}", "headers": {"X": "a\r\nb"}}, 4300),
            ({"body": "{% if %}"}, 4329),
            ({"body": "{{ secret }}"}, 4327),
        ):
            _, answer = await both.api("PUT", "/v1/receivers/ann/addresses/hook", {**hook, "format": form})
            assert answer["code"] == code and answer.get("pointer", "/format").startswith("/format"), answer
        form = {"body": '{"x": {{ content.data.missing }}}'}
        assert (await both.api("PUT", "/v1/receivers/ann/addresses/hook", {**hook, "format": form}))[0] == 200
        await both.api("PUT", "/v1/notifications/n1", {"to": {"receiver": "ann"}, "content": {"title": "x"}})
        assert await wait_for_row(both, "n1", ("ann", "webhook"), "failed") == "content"


async def test_a_body_that_took_too_long_to_render_is_tried_again(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path, LOOPBACK) as both, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        hook = {"channel": "webhook", "value": "http://127.0.0.1:9/", "format": {"body": '{"x": 1}'}}
        assert (await both.api("PUT", "/v1/receivers/ann/addresses/hook", hook))[0] == 200
        monkeypatch.setattr(renderer, "RENDER_S", 0.0)
        await both.api("PUT", "/v1/notifications/n1", {"to": {"receiver": "ann"}, "content": {"title": "x"}})
        await wait_for_row(both, "n1", ("ann", "webhook"), "deferred")


async def test_an_event_has_a_signature_that_the_public_key_verifies(tmp_path: Path, runtime: Path) -> None:
    taken: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        taken.put_nowait((dict(request.headers), await request.read()))
        return web.Response()

    async with running(tmp_path, LOOPBACK) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/receivers/ann/addresses/hook", {"channel": "webhook", "value": url})
        await both.api("PUT", "/v1/notifications/n1", {"to": {"receiver": "ann"}, "content": {"title": "x"}})
        headers, body = await taken.get()
        [signature] = [part[4:] for part in headers["webhook-signature"].split() if part.startswith("v1a,")]
        async with both.http.get(both.url + "/v1/keys.json") as answer:
            public = answer.headers["Godwit-Webhook-Key"].removeprefix("whpk_")
            assert json.loads(await answer.text())["keys"][0]["kty"] == "OKP"
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        Ed25519PublicKey.from_public_bytes(base64.b64decode(public)).verify(base64.b64decode(signature), signed)


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("{{ name | default: 'you' }}", []),
        ("{% if name %}{{ name | default: 'you' }}{% endif %}", ["name"]),
        ("{{ name | upcase | default: 'you' }}", ["name"]),
        ("{{ name | default: other }}", ["other"]),
        ("{% for one in list %}{{ one.name | default: rest | upcase }}{% endfor %}", ["list", "rest"]),
        ("{{ nil | default: 'you' }}", []),
        ("{% assign who = name | default: 'you' %}{{ who }}", []),
    ],
)
async def test_a_variable_with_a_default_may_be_missing(dispatch: Running, text: str, needed: list[str]) -> None:
    status, answer = await dispatch.api("PUT", "/v1/templates/t", {"locales": {"default": {"title": text}}})
    assert (status, answer["variables"]) == (200, needed)
    status, answer = await dispatch.api("POST", "/v1/templates/t/preview", {"data": {}})
    if needed:
        assert (status, answer["code"]) == (422, 4328)
    else:
        assert answer["content"]["title"] == "you"


async def test_a_filter_that_does_not_exist_is_refused_when_the_template_is_stored(dispatch: Running) -> None:
    template = {"locales": {"default": {"title": "{{ name | uppercase }}"}}}
    status, answer = await dispatch.api("PUT", "/v1/templates/t", template)
    assert (status, answer["code"], answer["pointer"]) == (422, 4327, "/locales/default/title")


async def test_previews_and_dry_runs_have_a_rate_of_each_tenant(tmp_path: Path, runtime: Path) -> None:
    async with (
        running(tmp_path, {"dispatch_limits": {"previews_per_second_max": 1}}) as both,
        asyncio.timeout(DEADLINE_S),
    ):
        other = await make_key(both, "bank", "admin")
        template = {"locales": {"default": {"title": "x"}}}
        note = {"to": {"receiver": {"id": "ann"}}, "content": {"template": "hi"}}
        while (await both.api("PUT", "/v1/templates/hi", template))[0] != 200:
            pass
        asks = (("PUT", "/v1/templates/hi", template), ("POST", "/v1/templates/hi/preview", {}))
        for method, path, body in (*asks, ("POST", "/v1/notifications/check", note)):
            while (answered := await both.api(method, path, body))[0] == 200:
                pass
            assert (answered[0], answered[1]["code"], answered[1]["retry"]) == (429, 4330, True)
        assert (await both.api("PUT", "/v1/templates/hi", template, key=other))[0] == 200
        assert (await both.api("PUT", "/v1/notifications/n1", note))[0] == 202, "a send is no preview"
