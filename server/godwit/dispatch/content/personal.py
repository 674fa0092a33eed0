"""Content that is rendered for each receiver: a template that names `receiver`.

A notification keeps the parts it was accepted with. They are rendered for a page of receivers at a time, before the
channels start. If rendering fails, only that receiver's deliveries fail. If the application passes `data.receiver`, that
is used instead.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from ..errors import RenderInterrupted
from ..model import ADDRESS_PREFIX, Person, Personal
from ..pure.locales import choose_locale
from .process import RendererMissing
from .renderer import Renderer, Source
from .templates import DEFAULT, Parts, Rendered, assemble, list_sources

RECEIVER = "receiver"
AT_ONCE = 100
INTERRUPTIONS_MAX = 2
PAGE_BYTES = 8 * 1024 * 1024
"""Rendered bytes after which a page ends early."""
BUDGET_S = 1.0
"""How long one page is rendered before it ends early, so that other tenants get their turn."""


class Form(Struct, omit_defaults=True):
    """The parts from which each receiver's texts are rendered."""

    locales: dict[str, Parts]
    data: dict[str, Any] = {}


class Filled(NamedTuple):
    """The result of a notification's template: one content for each locale, or a form for content of each receiver."""

    rendered: Sequence[Rendered] = ()
    form: Form | None = None
    actions: Sequence[Any] = ()
    """Stored once, in addition to the form."""


NOTHING = Filled()
"""The channels' overrides, for content without a template."""


def is_personal(variables: Collection[str], data: Mapping[str, Any]) -> bool:
    """Whether a template with these variables is rendered for each receiver."""
    return RECEIVER in variables and RECEIVER not in data


def name_receiver(name: str, attributes: bytes) -> dict[str, Any]:
    """The value of `receiver` in a template: id, locale, zone and attributes. A bare address has no id."""
    known = msgspec.json.decode(attributes, type=dict[str, Any]) if attributes else {}
    shown = {key: known[key] for key in ("locale", "zone") if known.get(key)}
    names = {} if name.startswith(ADDRESS_PREFIX) else {"id": name}
    return {**names, **shown, "attributes": known.get("attributes") or {}}


async def render_people(
    renderer: Renderer, form: Form, people: Sequence[Person], budget_s: float = BUDGET_S
) -> list[Personal]:
    """Render the content of the first receivers, as many as the time allows, at least one. Raises RendererMissing."""
    paths = {locale: [path for path, _ in list_sources(parts)] for locale, parts in form.locales.items()}
    sources: dict[str, list[Source]] = {
        locale: [source for _, source in list_sources(parts)] for locale, parts in form.locales.items()
    }
    asked = [_ask_for(person, paths) for person in people]
    done: list[Personal] = []
    end_s, at_once, interruptions, size = time.monotonic() + budget_s, AT_ONCE, 0, 0
    while len(done) < len(people) and (not done or (time.monotonic() < end_s and size < PAGE_BYTES)):
        batch = asked[len(done) : len(done) + at_once]
        try:
            results = await renderer.render_receivers(sources, form.data, batch)
        except RendererMissing:
            raise
        except RenderInterrupted as error:
            interruptions += 1 if at_once == 1 else 0
            at_once = 1  # from here on one by one: it is the fault of one of them
            if interruptions < INTERRUPTIONS_MAX:
                continue
            results = [error.detail]
        interruptions = 0
        for result in results:
            rid, locale = people[len(done)].rid, asked[len(done)][0]
            if isinstance(result, str):
                done.append(Personal(rid, failure=result))
                continue
            rendered = assemble(locale, paths[locale], result, {})
            done.append(Personal(rid, rendered.content, rendered.email))
            size += len(rendered.content) + len(rendered.email)
    return done


def _ask_for(person: Person, locales: Collection[str]) -> tuple[str, dict[str, Any]]:
    named = name_receiver(person.name, person.attributes)
    locale = choose_locale(str(named.get("locale", "")), [one for one in locales if one != DEFAULT]) or DEFAULT
    return locale, {RECEIVER: named}
