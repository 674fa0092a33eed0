"""Templates: their parts by locale, what is rendered from them, and which locale a receiver gets.

Parts are rendered once for each locale when a notification is accepted. A template that does not render is refused then,
and a notification to a million receivers needs few renderings. A template that names `receiver` is rendered for each
receiver (personal.py). `es-MX` falls back to `es`, and that to `default`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ..codes import DispatchCode
from ..errors import RequestRefused
from .renderer import Renderer, Source

DEFAULT = "default"
Part = Annotated[str, Meta(max_length=50_000)]
HTML_MAX = 250_000
Html = Annotated[str, Meta(max_length=HTML_MAX)]
GENERAL = ("title", "body", "url", "icon")


class EmailPart(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The parts of an e-mail. Values in `html` are escaped. `mjml` is converted to `html` when the template is stored."""

    subject: Part | None = None
    text: Part | None = None
    html: Html | None = None
    mjml: Part | None = None


class Parts(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A template in one locale."""

    title: Part | None = None
    body: Part | None = None
    url: Part | None = None
    icon: Part | None = None
    email: EmailPart | None = None


class Rendered(Struct, frozen=True):
    """Content in one locale: the common part, and the part for e-mail. Both JSON."""

    locale: str
    content: bytes
    email: bytes


def list_sources(parts: Parts) -> list[tuple[str, Source]]:
    """The texts of a locale, by path."""
    found = [(name, Source(text)) for name in GENERAL if (text := getattr(parts, name)) is not None]
    if parts.email is not None:
        rows = [(name, getattr(parts.email, name)) for name in ("subject", "text", "html")]
        found += [(f"email.{name}", Source(text, name == "html")) for name, text in rows if text is not None]
    return found


async def list_variables(renderer: Renderer, locales: Mapping[str, Parts]) -> list[str]:
    """The names that a notification's `data` must have; raises RequestRefused for a text that is not valid Liquid."""
    names: set[str] = set()
    for locale, parts in locales.items():
        for path, source in list_sources(parts):
            try:
                names.update(await renderer.list_variables([source]))
            except RequestRefused as refused:
                pointer = f"/locales/{locale}/{path.replace('.', '/')}"
                raise RequestRefused(DispatchCode.TEMPLATE_INVALID, refused.detail, pointer=pointer) from refused
    return sorted(names)


async def compile_mjml(renderer: Renderer, locales: Mapping[str, Parts]) -> dict[str, Parts]:
    """The locales with the HTML of their MJML; raises RequestRefused if it cannot be converted."""
    compiled = dict(locales)
    for locale, parts in locales.items():
        if parts.email is None or parts.email.mjml is None:
            continue
        pointer = f"/locales/{locale}/email/mjml"
        if parts.email.html is not None:
            detail = "expected either mjml or html: mjml is converted to html"
            raise RequestRefused(DispatchCode.TEMPLATE_INVALID, detail, pointer=pointer)
        try:
            html = await renderer.compile_mjml(parts.email.mjml)
        except RequestRefused as refused:
            raise RequestRefused(DispatchCode.TEMPLATE_INVALID, refused.detail, pointer=pointer) from refused
        if len(html) > HTML_MAX:
            detail = f"its HTML has {len(html):,} characters: expected at most {HTML_MAX:,}"
            raise RequestRefused(DispatchCode.TEMPLATE_INVALID, detail, pointer=pointer)
        compiled[locale] = msgspec.structs.replace(parts, email=msgspec.structs.replace(parts.email, html=html))
    return compiled


def show_source(locales: Mapping[str, Parts]) -> dict[str, Parts]:
    """The locales as the tenant stored them: without HTML that was made from MJML."""
    return {
        locale: msgspec.structs.replace(parts, email=msgspec.structs.replace(parts.email, html=None))
        if parts.email is not None and parts.email.mjml is not None
        else parts
        for locale, parts in locales.items()
    }


def strip_mjml(locales: Mapping[str, Parts]) -> dict[str, Parts]:
    """The locales without MJML; its HTML stays."""
    return {
        locale: parts
        if parts.email is None
        else msgspec.structs.replace(parts, email=msgspec.structs.replace(parts.email, mjml=None))
        for locale, parts in locales.items()
    }


async def render_locales(
    renderer: Renderer, locales: Mapping[str, Parts], variables: Collection[str], data: Mapping[str, Any]
) -> list[Rendered]:
    """Render every locale, the default first; raises RequestRefused if data lacks a variable or a part does not render."""
    check_data(variables, data)
    rendered = []
    for locale in order_locales(locales):
        sources = list_sources(locales[locale])
        texts = await renderer.render([source for _, source in sources], data)
        rendered.append(assemble(locale, [path for path, _ in sources], texts, data))
    return rendered


def check_data(variables: Collection[str], data: Mapping[str, Any]) -> None:
    """Raises RequestRefused if data lacks a name."""
    lacking = [name for name in variables if name not in data]
    if lacking:
        detail = f"data lacks {', '.join(lacking)}, which the template needs"
        raise RequestRefused(DispatchCode.DATA_MISSING, detail, pointer="/content/data")


def order_locales(locales: Collection[str]) -> list[str]:
    """The locales, the default first."""
    return sorted(locales, key=lambda name: (name != DEFAULT, name))


def assemble(locale: str, paths: Sequence[str], texts: Sequence[str], data: Mapping[str, Any]) -> Rendered:
    """Content from the texts of a locale."""
    by_path = dict(zip(paths, texts, strict=True))
    content: dict[str, Any] = {name: by_path[name] for name in GENERAL if name in by_path}
    content |= {"data": dict(data)} if data else {}
    email = {path.removeprefix("email."): text for path, text in by_path.items() if path.startswith("email.")}
    return Rendered(locale, msgspec.json.encode(content), msgspec.json.encode(email) if email else b"")
