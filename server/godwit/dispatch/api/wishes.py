"""The receivers' preferences over HTTP: preferences, categories and suppressions."""

from __future__ import annotations

import time

import msgspec
from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..codes import DispatchCode
from ..errors import RequestRefused
from ..stores.sqlite import receivers
from ..stores.sqlite.manage import wishes
from ..stores.sqlite.store import SqliteStore
from ..tokens import SigningKey
from .answers import answer
from .bodies import CategoryBody, PreferencesBody, SuppressionBody, read_body
from .inbox import read_owner
from .keys import KeyRing
from .requests import read_bytes, read_name

CHANNELS = ("webhook", "email")


class WishApi:
    """The handlers."""

    def __init__(self, store: SqliteStore, keys: KeyRing, limits: DispatchLimits, signing: SigningKey) -> None:
        self._store, self._keys, self._limits, self._signing = store, keys, limits, signing

    def list_routes(self) -> list[web.RouteDef]:
        category, suppression = "/v1/categories/{category}", "/v1/suppressions/{channel}/{value:.+}"
        preferences = "/v1/receivers/{receiver}/preferences"
        return [
            web.get(preferences, self.get_preferences, allow_head=False),
            web.put(preferences, self.put_preferences),
            web.get("/v1/inbox/preferences", self.get_own, allow_head=False),
            web.put("/v1/inbox/preferences", self.put_own),
            web.get("/v1/categories", self.list_categories, allow_head=False),
            web.get(category, self.get_category, allow_head=False),
            web.put(category, self.put_category),
            web.delete(category, self.delete_category),
            web.get(suppression, self.get_suppression, allow_head=False),
            web.put(suppression, self.put_suppression),
            web.delete(suppression, self.delete_suppression),
        ]

    async def get_preferences(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "read")
        return await self._show(tenant, read_name(request, "receiver", self._limits))

    async def put_preferences(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "manage")
        return await self._put(request, tenant, read_name(request, "receiver", self._limits))

    async def get_own(self, request: web.Request) -> web.Response:
        """The receiver's own preferences, with the receiver's token."""
        return await self._show(*read_owner(request, self._signing))

    async def put_own(self, request: web.Request) -> web.Response:
        return await self._put(request, *read_owner(request, self._signing))

    async def list_categories(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "read")
        rows = await self._store.reader.run(lambda connection: wishes.list_categories(connection, tenant))
        return answer({"categories": [_show_category(*row) for row in rows]})

    async def get_category(self, request: web.Request) -> web.Response:
        tenant, name = await self._keys.read_tenant(request, "read"), read_name(request, "category", self._limits)
        rows = await self._store.reader.run(lambda connection: wishes.list_categories(connection, tenant, name))
        if not rows:
            raise RequestRefused(DispatchCode.CATEGORY_MISSING)
        return answer(_show_category(*rows[0]))

    async def put_category(self, request: web.Request) -> web.Response:
        tenant, name = await self._keys.read_tenant(request, "manage"), read_name(request, "category", self._limits)
        body, _ = read_body(await read_bytes(request) or b"{}", CategoryBody)
        row = (tenant, name, body.required, body.expires_s)
        is_new = await self._store.writer.run(lambda connection: wishes.put_category(connection, *row))
        return answer(_show_category(*row[1:]), 201 if is_new else 200)

    async def delete_category(self, request: web.Request) -> web.Response:
        tenant, name = await self._keys.read_tenant(request, "manage"), read_name(request, "category", self._limits)
        if not await self._store.writer.run(lambda connection: wishes.delete_category(connection, tenant, name)):
            raise RequestRefused(DispatchCode.CATEGORY_MISSING)
        return web.Response(status=204)

    async def get_suppression(self, request: web.Request) -> web.Response:
        tenant, channel, value = await self._read_address(request, "read")
        rows = await self._store.reader.run(
            lambda connection: wishes.list_suppressions(connection, tenant, channel, value)
        )
        if not rows:
            raise RequestRefused(DispatchCode.SUPPRESSION_MISSING)
        shown = [{"category": row[0], "reason": row[1], "since_ms": row[2]} for row in rows]
        return answer({"channel": channel, "value": value, "suppressions": shown})

    async def put_suppression(self, request: web.Request) -> web.Response:
        tenant, channel, value = await self._read_address(request, "manage")
        body, _ = read_body(await read_bytes(request) or b"{}", SuppressionBody)
        now_ms = time.time_ns() // 1_000_000
        row = (tenant, channel, value, body.category or "*", body.reason, now_ms)
        await self._store.writer.run(lambda connection: wishes.put_suppression(connection, *row))
        return answer({"channel": channel, "value": value, "category": body.category or "*", "reason": body.reason})

    async def delete_suppression(self, request: web.Request) -> web.Response:
        """Delete suppressions: the address is used again, even if it was found to be invalid."""
        tenant, channel, value = await self._read_address(request, "manage")
        if not await self._store.writer.run(
            lambda connection: wishes.delete_suppressions(connection, tenant, channel, value)
        ):
            raise RequestRefused(DispatchCode.SUPPRESSION_MISSING)
        invalid = await self._store.reader.run(
            lambda connection: wishes.list_invalid(connection, tenant, channel, value)
        )
        if invalid:
            await self._store.writer.run(lambda connection: wishes.revive(connection, invalid))
        return web.Response(status=204)

    async def _show(self, tenant: str, receiver: str) -> web.Response:
        found = await self._store.reader.run(
            lambda connection: receivers.read_preferences(connection, tenant, receiver)
        )
        if found is None:
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        rows = await self._store.reader.run(lambda connection: wishes.list_categories(connection, tenant))
        required = [name for name, is_required, _ in rows if is_required]
        return answer({"categories": msgspec.Raw(found), "known": [row[0] for row in rows], "required": required})

    async def _put(self, request: web.Request, tenant: str, receiver: str) -> web.Response:
        body, _ = read_body(await read_bytes(request), PreferencesBody)
        packed = msgspec.json.encode(body.categories)
        if not await self._store.writer.run(
            lambda connection: receivers.put_preferences(connection, tenant, receiver, packed)
        ):
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        return await self._show(tenant, receiver)

    async def _read_address(self, request: web.Request, scope: str) -> tuple[str, str, str]:
        tenant = await self._keys.read_tenant(request, scope)
        channel, value = request.match_info["channel"], request.match_info["value"]
        if channel not in CHANNELS or len(value) > 2_048:
            raise RequestRefused(
                DispatchCode.REQUEST_INVALID, f"expected a channel, {' or '.join(CHANNELS)}, and a value"
            )
        return tenant, channel, value


def _show_category(name: str, is_required: bool, expires_s: int | None) -> dict[str, object]:
    return {"id": name, "required": bool(is_required), "expires_s": expires_s}
