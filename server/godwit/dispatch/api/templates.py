"""Templates over HTTP: store a version, show it, preview it, delete it; and the content that a notification gets from one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..clock import now_ms
from ..codes import DispatchCode
from ..content.personal import RECEIVER, Filled, Form, is_personal, name_receiver
from ..content.renderer import Renderer
from ..content.templates import (
    DEFAULT,
    Parts,
    Rendered,
    check_data,
    compile_mjml,
    list_variables,
    render_locales,
    show_source,
    strip_mjml,
)
from ..errors import RequestRefused
from ..pure.locales import choose_locale
from ..stores.sqlite import contents
from ..stores.sqlite.receivers import read_receiver
from ..stores.sqlite.store import SqliteStore
from .answers import answer
from .bodies import Content, PreviewBody, TemplateBody, read_body
from .keys import KeyRing
from .rates import AcceptRates
from .requests import read_bytes, read_name, read_number


class TemplateApi:
    """The handlers."""

    def __init__(
        self, store: SqliteStore, keys: KeyRing, limits: DispatchLimits, renderer: Renderer, previews: AcceptRates
    ) -> None:
        self._store, self._keys, self._limits, self._renderer = store, keys, limits, renderer
        self._previews = previews

    def list_routes(self) -> list[web.RouteDef]:
        path = "/v1/templates/{template}"
        return [
            web.get("/v1/templates", self.list_all, allow_head=False),
            web.get(path, self.get, allow_head=False),
            web.put(path, self.put),
            web.delete(path, self.delete),
            web.post(path + "/preview", self.preview),
        ]

    async def list_all(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "read")
        rows = await self._store.reader.run(lambda connection: contents.list_templates(connection, tenant))
        return answer({"templates": [{"id": name, "version": version} for name, version in rows]})

    async def get(self, request: web.Request) -> web.Response:
        tenant, name = await self._keys.read_tenant(request, "read"), read_name(request, "template", self._limits)
        version = read_number(request, "version", 0) or None
        row = await self._find(tenant, name, version)
        variables = msgspec.Raw(row.variables)
        locales = show_source(msgspec.json.decode(row.body, type=dict[str, Parts]))
        return answer({"id": name, "version": row.version, "locales": locales, "variables": variables})

    async def put(self, request: web.Request) -> web.Response:
        """Store a version, after its Liquid was checked."""
        tenant, name = await self._keys.read_tenant(request, "manage"), read_name(request, "template", self._limits)
        body, _ = read_body(await read_bytes(request), TemplateBody)
        if DEFAULT not in body.locales:
            raise RequestRefused(DispatchCode.REQUEST_INVALID, "expected a locale `default`", pointer="/locales")
        await self._previews.take(tenant)
        renderer = self._renderer.of(tenant)
        locales = await compile_mjml(renderer, body.locales)
        variables = await list_variables(renderer, locales)
        packed = msgspec.json.encode(locales), msgspec.json.encode(variables), now_ms()
        version = await self._store.writer.run(
            lambda connection: contents.put_template(connection, tenant, name, *packed)
        )
        return answer({"id": name, "version": version, "variables": variables})

    async def delete(self, request: web.Request) -> web.Response:
        tenant, name = await self._keys.read_tenant(request, "manage"), read_name(request, "template", self._limits)
        if not await self._store.writer.run(lambda connection: contents.delete_template(connection, tenant, name)):
            raise RequestRefused(DispatchCode.TEMPLATE_MISSING)
        return web.Response(status=204)

    async def preview(self, request: web.Request) -> web.Response:
        tenant, name = await self._keys.read_tenant(request, "read"), read_name(request, "template", self._limits)
        body, _ = read_body(await read_bytes(request) or b"{}", PreviewBody)
        await self._previews.take(tenant)
        row = await self._find(tenant, name, body.version)
        wanted, data = body.locale, body.data
        if body.receiver is not None:
            receiver = await self._name_receiver(tenant, body.receiver)
            wanted, data = wanted or receiver.get("locale", ""), {RECEIVER: receiver, **data}
        rendered = await render_row(self._renderer.of(tenant), row, data)
        locale = choose_locale(wanted, [one.locale for one in rendered]) or DEFAULT
        [chosen] = [one for one in rendered if one.locale == locale]
        shown = {"id": name, "version": row.version, "locale": locale, "content": msgspec.Raw(chosen.content)}
        return answer({**shown, "email": msgspec.Raw(chosen.email)} if chosen.email else shown)

    async def _name_receiver(self, tenant: str, name: str) -> dict[str, Any]:
        found = await self._store.reader.run(lambda connection: read_receiver(connection, tenant, name))
        if found is None:
            raise RequestRefused(DispatchCode.RECEIVER_UNKNOWN, pointer="/receiver")
        return name_receiver(found[0].name, found[0].attributes)

    async def _find(self, tenant: str, name: str, version: int | None) -> contents.TemplateRow:
        row = await self._store.reader.run(lambda connection: contents.find_template(connection, tenant, name, version))
        if row is None:
            raise RequestRefused(DispatchCode.TEMPLATE_MISSING)
        return row


async def render_row(renderer: Renderer, row: contents.TemplateRow, data: dict[str, object]) -> list[Rendered]:
    """Render every locale of a stored template, the default first; raises RequestRefused."""
    locales = msgspec.json.decode(row.body, type=dict[str, Parts])
    variables: Collection[str] = msgspec.json.decode(row.variables, type=list[str])
    return await render_locales(renderer, locales, variables, data)


async def fill_content(store: SqliteStore, renderer: Renderer, tenant: str, content: Content) -> Filled:
    """The content of a notification's template; nothing for content without one. Raises RequestRefused."""
    if content.template is None:
        if content.version is not None:
            raise RequestRefused(DispatchCode.REQUEST_INVALID, "version needs template", pointer="/content/version")
        return Filled()
    if any(one is not None for one in (content.title, content.body, content.url, content.icon)):
        detail = "a template gives title, body, url and icon: expected only template, version, data and actions"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/content")
    name, version = content.template, content.version
    row = await store.reader.run(lambda connection: contents.find_template(connection, tenant, name, version))
    if row is None:
        raise RequestRefused(DispatchCode.TEMPLATE_UNKNOWN, pointer="/content/template")
    actions = msgspec.to_builtins(content.actions)
    variables = msgspec.json.decode(row.variables, type=list[str])
    if is_personal(variables, content.data):
        check_data([one for one in variables if one != RECEIVER], content.data)
        locales = msgspec.json.decode(row.body, type=dict[str, Parts])
        return Filled(form=Form(strip_mjml(locales), content.data), actions=actions)
    rendered = await render_row(renderer, row, content.data)
    if actions:
        rendered = [
            msgspec.structs.replace(
                one, content=msgspec.json.encode({**msgspec.json.decode(one.content), "actions": actions})
            )
            for one in rendered
        ]
    return Filled(rendered)
