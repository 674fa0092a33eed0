"""Tenants and API keys over HTTP. Only scope `operator` makes tenants, and keys of other tenants than its own.

A key is shown once, when it is made; afterwards it is known by its id, the beginning of its digest.
"""

from __future__ import annotations

from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..codes import DispatchCode
from ..errors import RequestRefused
from ..stores.sqlite import receivers
from ..stores.sqlite.store import SqliteStore
from .answers import answer
from .bodies import KeyBody, read_body
from .keys import Caller, KeyRing, digest_key, make_key
from .requests import read_name


class TenantApi:
    """The handlers."""

    def __init__(self, store: SqliteStore, keys: KeyRing, limits: DispatchLimits) -> None:
        self._store, self._keys, self._limits = store, keys, limits

    def list_routes(self) -> list[web.RouteDef]:
        return [
            web.put("/v1/tenants/{tenant}", self.put_tenant),
            web.post("/v1/keys", self.post_key),
            web.get("/v1/keys", self.list_keys, allow_head=False),
            web.delete("/v1/keys/{key}", self.delete_key),
        ]

    async def put_tenant(self, request: web.Request) -> web.Response:
        await self._read_caller(request, "operator")
        name = read_name(request, "tenant", self._limits)
        is_new = await self._store.writer.run(lambda connection: receivers.put_tenant(connection, name))
        return answer({"id": name}, 201 if is_new else 200)

    async def post_key(self, request: web.Request) -> web.Response:
        caller = await self._read_caller(request, "admin")
        body, _ = read_body(await request.read(), KeyBody)
        tenant = caller.tenant if body.tenant is None else body.tenant
        is_operator = "operator" in caller.scopes
        if (tenant != caller.tenant or "operator" in body.scopes) and not is_operator:
            raise RequestRefused(DispatchCode.SCOPE_MISSING, "this request needs the scope 'operator'")
        key, scopes = make_key(), " ".join(sorted(set(body.scopes)))
        digest = digest_key(key)
        if not await self._store.writer.run(
            lambda connection: (
                receivers.has_tenant(connection, tenant) and receivers.put_key(connection, digest, tenant, scopes)
            )
        ):
            raise RequestRefused(DispatchCode.TENANT_MISSING)
        return answer({"id": digest.hex()[:16], "key": key, "tenant": tenant, "scopes": scopes.split()}, 201)

    async def list_keys(self, request: web.Request) -> web.Response:
        tenant = (await self._read_caller(request, "admin")).tenant
        rows = await self._store.reader.run(lambda connection: receivers.list_keys(connection, tenant))
        return answer({"keys": [{"id": digest.hex()[:16], "scopes": scopes.split()} for digest, scopes in rows]})

    async def delete_key(self, request: web.Request) -> web.Response:
        tenant, name = (await self._read_caller(request, "admin")).tenant, request.match_info["key"]
        digests = await self._store.writer.run(lambda connection: receivers.delete_key(connection, tenant, name))
        if not digests:
            raise RequestRefused(DispatchCode.KEY_MISSING)
        for digest in digests:
            self._keys.forget(digest)
        return web.Response(status=204)

    async def _read_caller(self, request: web.Request, scope: str) -> Caller:
        authorization = request.headers.get("Authorization", "")
        return await self._keys.read_caller(authorization, request.remote or "", scope)
