"""Providers of e-mail over HTTP. Only scope `operator` manages them: a provider can send in the name of its domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from aiohttp import web

from ....config.dispatch_email import check_relay, is_domain, is_email
from ....config.dispatch_limits import DispatchLimits
from ...codes import DispatchCode
from ...errors import RequestRefused
from ...model import ProviderState
from ...stores.sqlite.manage.providers import (
    CONFIGURED,
    ProviderRow,
    delete_provider,
    find_provider,
    list_providers,
    put_provider,
)
from ...stores.sqlite.store import SqliteStore
from ..answers import answer
from ..bodies import read_body
from ..keys import KeyRing
from ..requests import read_bytes, read_name
from .bodies import ProviderBody


class Mail(Protocol):
    """What uses the providers."""

    def check(self, row: ProviderRow) -> None:
        """Raises RequestRefused if a provider cannot be used."""

    def put(self, row: ProviderRow) -> None:
        """Uses a provider from now on."""

    def remove(self, name: str) -> None:
        """Uses it no longer."""

    def describe(self) -> Mapping[str, ProviderState]:
        """How each provider is that is used."""


class ProviderApi:
    """The handlers."""

    def __init__(self, store: SqliteStore, keys: KeyRing, limits: DispatchLimits, mail: Mail) -> None:
        self._store, self._keys, self._limits, self._mail = store, keys, limits, mail

    def list_routes(self) -> list[web.RouteDef]:
        path = "/v1/providers/{provider}"
        return [
            web.get("/v1/providers", self.list_all, allow_head=False),
            web.get(path, self.get, allow_head=False),
            web.put(path, self.put),
            web.delete(path, self.delete),
        ]

    async def list_all(self, request: web.Request) -> web.Response:
        """Stored providers, and the names of those that only the configuration knows."""
        await self._keys.read_request(request, "operator")
        rows = await self._store.reader.run(list_providers)
        shown = [self._show(row) for row in rows]
        states = self._mail.describe()
        if CONFIGURED in states:
            shown.insert(0, {"id": CONFIGURED, "configured": True, **_show_state(states[CONFIGURED])})
        return answer({"providers": shown})

    async def get(self, request: web.Request) -> web.Response:
        await self._keys.read_request(request, "operator")
        name = read_name(request, "provider", self._limits)
        row = await self._store.reader.run(lambda connection: find_provider(connection, name))
        if row is None:
            raise RequestRefused(DispatchCode.PROVIDER_MISSING)
        return answer(self._show(row))

    async def put(self, request: web.Request) -> web.Response:
        """Stores a provider and uses it for what is sent from now on."""
        await self._keys.read_tenant(request, "operator")
        name = read_name(request, "provider", self._limits)
        body, _ = read_body(await read_bytes(request), ProviderBody)
        if name == CONFIGURED:
            raise RequestRefused(DispatchCode.REQUEST_INVALID, "this name is for the provider of the configuration")
        _check(body)
        known = await self._store.reader.run(lambda connection: find_provider(connection, name))
        row = make_row(name, body, known)
        self._mail.check(row)
        is_new = await self._store.writer.run(lambda connection: put_provider(connection, row))
        self._mail.put(row)
        return answer(self._show(row), 201 if is_new else 200)

    async def delete(self, request: web.Request) -> web.Response:
        """Sends over it that are under way are finished; the others use another provider, or wait."""
        await self._keys.read_tenant(request, "operator")
        name = read_name(request, "provider", self._limits)
        if not await self._store.writer.run(lambda connection: delete_provider(connection, name)):
            raise RequestRefused(DispatchCode.PROVIDER_MISSING)
        self._mail.remove(name)
        return web.Response(status=204)

    def _show(self, row: ProviderRow) -> dict[str, Any]:
        """Without its secrets."""
        shown = msgspec.json.decode(row.settings, type=dict[str, Any])
        secrets = {"has_password": bool(row.password), "has_dkim_key": bool(row.dkim_key)}
        return {"id": row.name, **shown, **secrets, **_show_state(self._mail.describe().get(row.name))}


def make_row(name: str, body: ProviderBody, known: ProviderRow | None) -> ProviderRow:
    """What is stored of a body. A DKIM key stays where `dkim` is absent; a password stays for the same relay, security and user."""
    before = msgspec.json.decode(known.settings, type=dict[str, Any]) if known else {}
    is_same = all(before.get(field) == getattr(body, field) for field in ("relay", "security", "user"))
    password = body.password if body.password is not None else known.password if known and is_same else ""
    key, selector = (known.dkim_key, before.get("dkim_selector")) if known else ("", None)
    if not isinstance(body.dkim, msgspec.UnsetType):
        key, selector = ("", None) if body.dkim is None else (body.dkim.key, body.dkim.selector)
    settings = {field: value for field, value in msgspec.to_builtins(body).items() if field not in ("password", "dkim")}
    settings |= {"dkim_selector": selector} if selector else {}
    return ProviderRow(name, msgspec.json.encode(settings), password, key)


def _check(body: ProviderBody) -> None:
    try:
        check_relay(body.relay)
    except ValueError as error:
        raise RequestRefused(DispatchCode.REQUEST_INVALID, f"relay {error}", pointer="/relay") from error
    if not body.relay:
        raise RequestRefused(DispatchCode.REQUEST_INVALID, "expected HOST:PORT", pointer="/relay")
    if not is_email(body.sender):
        raise RequestRefused(DispatchCode.REQUEST_INVALID, "expected an e-mail address", pointer="/sender")
    for number, domain in enumerate(body.domains):
        if not is_domain(domain):
            detail = f"{domain!r:.100} is not a domain"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer=f"/domains/{number}")
    if body.password and not body.user:
        raise RequestRefused(DispatchCode.REQUEST_INVALID, "a password needs a user", pointer="/password")


def _show_state(found: ProviderState | None) -> dict[str, Any]:
    if found is None or not found.reason:
        return {"state": "working", "in_flight": 0 if found is None else found.in_flight}
    rests = {"rests_ms": found.rests_ms, "at_once": found.at_once, "in_flight": found.in_flight}
    return {"state": "resting", "reason": found.reason, **rests}
