"""Templates in a child process with limits: locales, strict variables, and templates that use too much memory or time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from godwit.dispatch.codes import DispatchCode
from godwit.dispatch.content.process import Turns
from godwit.dispatch.content.renderer import Renderer, RenderFailed, Source
from godwit.dispatch.content.templates import EmailPart, Parts, list_variables, render_locales
from godwit.dispatch.errors import RenderInterrupted, RequestRefused
from godwit.dispatch.pure.locales import choose_locale

pytest.importorskip("liquid", reason="needs the extra `dispatch`")

WELCOME = {
    "default": Parts(title="Hi {{ name }}", email=EmailPart(subject="Welcome", html="<p>{{ name }}</p>")),
    "es": Parts(title="Hola {{ name }}"),
}


@pytest.fixture
async def renderer() -> AsyncIterator[Renderer]:
    opened = Renderer()
    yield opened
    await opened.close()


def test_a_locale_falls_back() -> None:
    there = ["es", "pt-BR"]
    wanted = ("es-MX", "es", "pt-br", "pt_BR", "pt", "de", "")
    assert [choose_locale(one, there) for one in wanted] == ["es", "es", "pt-BR", "pt-BR", "", "", ""]


async def test_every_locale_is_rendered_and_html_is_escaped(renderer: Renderer) -> None:
    assert await list_variables(renderer, WELCOME) == ["name"]
    first, second = await render_locales(renderer, WELCOME, ["name"], {"name": "<b>"})
    assert msgspec.json.decode(first.content) == {"title": "Hi <b>", "data": {"name": "<b>"}}
    assert msgspec.json.decode(first.email) == {"subject": "Welcome", "html": "<p>&lt;b&gt;</p>"}
    assert (second.locale, msgspec.json.decode(second.content)["title"]) == ("es", "Hola <b>")


async def test_a_variable_that_is_not_there_and_a_text_that_is_not_liquid(renderer: Renderer) -> None:
    with pytest.raises(RequestRefused) as lacking:
        await render_locales(renderer, WELCOME, ["name"], {})
    assert lacking.value.code is DispatchCode.DATA_MISSING
    with pytest.raises(RequestRefused) as deep:
        await renderer.render([Source("{{ user.name }}")], {"user": {}})
    assert deep.value.code is DispatchCode.RENDER_FAILED
    with pytest.raises(RequestRefused) as broken:
        await list_variables(renderer, {"default": Parts(title="{% if %}")})
    assert (broken.value.code, broken.value.pointer) == (DispatchCode.TEMPLATE_INVALID, "/locales/default/title")


@pytest.mark.parametrize(
    "bomb",
    [
        '{{ (1..100000000) | join: "" }}',
        "{% for a in (1..100000) %}{% for b in (1..100000) %}x{% endfor %}{% endfor %}",
        "{% assign a = 'xxxxxxxxxx' %}" + "{% assign a = a | replace: 'x', 'xxxxxxxxxx' %}" * 9,
        "{% include 'secrets' %}",
        "{% render '/etc/passwd' %}",
    ],
)
async def test_a_bomb_is_refused_and_the_next_template_renders(renderer: Renderer, bomb: str) -> None:
    with pytest.raises((RenderFailed, RenderInterrupted)):
        await renderer.render([Source(bomb)], {})
    assert await renderer.render([Source("{{ n | plus: 1 }}")], {"n": 1}) == ["2"]


async def test_tenants_take_turns_at_the_process_that_renders(renderer: Renderer) -> None:
    done: list[str] = []

    async def render(tenant: str, number: int) -> None:
        await renderer.of(tenant).render([Source("{{ a }}")], {"a": number})
        done.append(f"{tenant}{number}")

    many = [asyncio.create_task(render("busy", number)) for number in range(20)]
    await asyncio.sleep(0)  # all of them wait
    few = [asyncio.create_task(render("other", number)) for number in range(2)]
    await asyncio.gather(*many, *few)
    assert done[:5] == ["busy0", "busy1", "other0", "busy2", "other1"]
    assert done[5:] == [f"busy{number}" for number in range(3, 20)]


async def test_a_turn_that_nobody_wants_any_more_goes_to_the_next() -> None:
    turns, held = Turns(), asyncio.Event()

    async def hold(name: str) -> str:
        async with turns.take(name):
            await held.wait()
            return name

    first, second, third = (asyncio.create_task(hold(name)) for name in "abc")
    await asyncio.sleep(0)
    second.cancel()
    held.set()
    assert (await first, await third) == ("a", "c") and second.cancelled()
    assert await hold("d") == "d", "it is free again"
