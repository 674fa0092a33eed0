"""Tenants and API keys over HTTP.

Only scope `operator` creates tenants, and keys of other tenants. A key is shown once, when it is created; afterwards it
is identified by its id, the beginning of its digest.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from aiohttp import web

from ....config.dispatch_limits import DispatchLimits
from ...clock import now_ms
from ...codes import DispatchCode
from ...errors import RequestRefused
from ...model import Quotas
from ...stores.sqlite import tenants
from ...stores.sqlite.manage import leaving, presence
from ...stores.sqlite.store import SqliteStore
from ..answers import answer
from ..bodies import KeyBody, TenantBody, read_body
from ..keys import KeyRing, digest_key, make_key
from ..rates import AcceptRates
from ..requests import read_bytes, read_name
from .providers import Mail


class TenantApi:
    """The handlers."""

    def __init__(
        self,
        store: SqliteStore,
        keys: KeyRing,
        limits: DispatchLimits,
        rates: AcceptRates,
        begin_presence: Callable[[str], None],
        mail: Mail,
    ) -> None:
        """`begin_presence` is called for a tenant that enables connection events."""
        self._store, self._keys, self._limits, self._rates = store, keys, limits, rates
        self._begin_presence, self._mail = begin_presence, mail

    def list_routes(self) -> list[web.RouteDef]:
        return [
            web.put("/v1/tenants/{tenant}", self.put_tenant),
            web.get("/v1/tenants/{tenant}", self.get_tenant, allow_head=False),
            web.delete("/v1/tenants/{tenant}", self.delete_tenant),
            web.post("/v1/keys", self.post_key),
            web.get("/v1/keys", self.list_keys, allow_head=False),
            web.delete("/v1/keys/{id}", self.delete_key),
        ]

    async def put_tenant(self, request: web.Request) -> web.Response:
        await self._keys.read_request(request, "operator")
        name = read_name(request, "tenant", self._limits)
        body, _ = read_body(await read_bytes(request) or b"{}", TenantBody)
        while (is_new := await self._store.writer.run(lambda connection: put_whole(connection, name, body))) is None:
            await self._store.finish_leaving(name)
        if body.quotas is not None:
            self._rates.set(name, body.quotas.accepts_per_s)
        if body.presence:
            self._begin_presence(name)
        return answer({"id": name}, 201 if is_new else 200)

    async def get_tenant(self, request: web.Request) -> web.Response:
        """Quotas and usage: of every tenant for an operator, of its own for an admin."""
        caller, name = await self._keys.read_request(request, "admin"), read_name(request, "tenant", self._limits)
        found = await self._store.reader.run(lambda connection: read_whole(connection, name))
        if found is None or (name != caller.tenant and "operator" not in caller.scopes):
            raise RequestRefused(DispatchCode.TENANT_MISSING)
        quotas, usage, is_wanted = found
        return answer({"id": name, "quotas": quotas, "presence": is_wanted, "usage": usage._asdict()})

    async def delete_tenant(self, request: web.Request) -> web.Response:
        """Delete a tenant with its keys, receivers, notifications and everything else; sends that have begun continue."""
        caller, name = await self._keys.read_request(request, "operator"), read_name(request, "tenant", self._limits)
        if name == caller.tenant:
            detail = "this key belongs to the tenant: delete the tenant with a key of another tenant"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail)
        begun = await self._store.writer.run(lambda connection: leaving.begin(connection, name))
        if begun is None:
            raise RequestRefused(DispatchCode.TENANT_MISSING)
        digests, providers = begun
        for digest in digests:
            self._keys.forget(digest)
        for row in providers:
            self._mail.put(row) if row.settings else self._mail.remove(row.name)
        await self._store.finish_leaving(name)
        return web.Response(status=204)

    async def post_key(self, request: web.Request) -> web.Response:
        caller = await self._keys.read_request(request, "admin")
        body, _ = read_body(await read_bytes(request), KeyBody)
        tenant = caller.tenant if body.tenant is None else body.tenant
        is_operator = "operator" in caller.scopes
        if (tenant != caller.tenant or "operator" in body.scopes) and not is_operator:
            raise RequestRefused(DispatchCode.SCOPE_MISSING, "this request needs the scope 'operator'")
        is_test = body.test
        if is_test and "operator" in body.scopes:
            detail = "a test key cannot have the scope operator, which acts on every tenant"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/scopes")
        key, scopes = make_key(is_test=is_test), " ".join(sorted(set(body.scopes)))
        digest = digest_key(key)
        if not await self._store.writer.run(
            lambda connection: (
                tenants.has_tenant(connection, tenant) and tenants.put_key(connection, digest, tenant, scopes, is_test)
            )
        ):
            raise RequestRefused(DispatchCode.TENANT_MISSING)
        return answer(
            {"id": digest.hex()[:16], "key": key, "tenant": tenant, "scopes": scopes.split(), "test": is_test}, 201
        )

    async def list_keys(self, request: web.Request) -> web.Response:
        tenant = (await self._keys.read_request(request, "admin")).tenant
        rows = await self._store.reader.run(lambda connection: tenants.list_keys(connection, tenant))
        return answer(
            {
                "keys": [
                    {"id": digest.hex()[:16], "scopes": scopes.split(), "test": is_test}
                    for digest, scopes, is_test in rows
                ]
            }
        )

    async def delete_key(self, request: web.Request) -> web.Response:
        tenant, name = (await self._keys.read_request(request, "admin")).tenant, request.match_info["id"]
        digests = await self._store.writer.run(lambda connection: tenants.delete_key(connection, tenant, name))
        if not digests:
            raise RequestRefused(DispatchCode.KEY_MISSING)
        for digest in digests:
            self._keys.forget(digest)
        return web.Response(status=204)


def put_whole(connection: sqlite3.Connection, name: str, body: TenantBody) -> bool | None:
    """Create or change a tenant; returns whether it is new. None: one of this name is being deleted."""
    if tenants.is_leaving(connection, name):
        return None
    is_new = tenants.put_tenant(connection, name, body.quotas)
    if body.presence is not None:
        presence.set_wanted(connection, name, is_wanted=body.presence)
    return is_new


def read_whole(connection: sqlite3.Connection, name: str) -> tuple[Quotas, tenants.Usage, bool] | None:
    """A tenant's quotas and usage, and whether it receives events of connections; None: no such tenant."""
    found = tenants.read_tenant(connection, name, now_ms()) if tenants.has_tenant(connection, name) else None
    return None if found is None else (*found, presence.is_wanted(connection, name))
