"""Receivers over HTTP: create, show, delete, their addresses, and the token with which a client reads an inbox."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..clock import now_ms
from ..codes import DispatchCode
from ..content.renderer import Renderer, Source
from ..errors import RequestRefused
from ..pure.quiet import find_zone
from ..stores.sqlite import receivers
from ..stores.sqlite.manage import presence
from ..stores.sqlite.manage.exporting import export_receiver
from ..stores.sqlite.store import SqliteStore
from ..tokens import SigningKey
from .answers import answer
from .bodies import AddressBody, ImportedReceiver, ReceiverBody, ReceiverPatch, read_body, read_json, read_value
from .keys import KeyRing
from .lines import Import
from .requests import check_free, check_length, read_bytes, read_name, read_number


class ReceiverApi:
    """The handlers. `check_address` raises RequestRefused for an address that its channel must not reach."""

    def __init__(
        self,
        store: SqliteStore,
        keys: KeyRing,
        limits: DispatchLimits,
        signing: SigningKey,
        check_address: Callable[[str, str], None],
        renderer: Renderer,
        is_connected: Callable[[str, str], bool],
    ) -> None:
        self._is_connected = is_connected
        self._store, self._keys, self._limits = store, keys, limits
        self._signing, self._check_address, self._renderer = signing, check_address, renderer

    def list_routes(self) -> list[web.RouteDef]:
        path = "/v1/receivers/{receiver}"
        return [
            web.post("/v1/receivers/import", self.import_lines),
            web.put(path, self.put),
            web.patch(path, self.patch),
            web.get(path + "/export", self.export, allow_head=False),
            web.get(path, self.get, allow_head=False),
            web.delete(path, self.delete),
            web.put(path + "/addresses/{address}", self.put_address),
            web.get(path + "/addresses/{address}", self.get_address, allow_head=False),
            web.delete(path + "/addresses/{address}", self.delete_address),
            web.post(path + "/token", self.make_token),
        ]

    async def put(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "manage")
        name = read_name(request, "receiver", self._limits)
        check_free(name)
        body, _ = read_body(await read_bytes(request) or b"{}", ReceiverBody)
        check_receiver(body)
        attributes, now_ms = msgspec.json.encode(body), time.time_ns() // 1_000_000
        is_new = await self._store.writer.run(
            lambda connection: receivers.put_receiver(connection, tenant, name, attributes, now_ms)
        )
        return answer({"id": name}, 201 if is_new else 200)

    async def patch(self, request: web.Request) -> web.Response:
        """Change the given fields, and keep the others (RFC 7396)."""
        tenant = await self._keys.read_tenant(request, "manage")
        name = read_name(request, "receiver", self._limits)
        patch = read_json(await read_bytes(request))
        read_value(patch, ReceiverPatch)
        time_ms = now_ms()
        await self._store.writer.run(lambda connection: patch_receiver(connection, tenant, name, patch, time_ms))
        return await self._show(tenant, name)

    async def export(self, request: web.Request) -> web.Response:
        """Everything that is stored about a receiver, for the receiver."""
        tenant = await self._keys.read_tenant(request, "read")
        name = read_name(request, "receiver", self._limits)
        found = await self._store.reader.run(lambda connection: export_receiver(connection, tenant, name))
        if found is None:
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        return answer(found)

    async def get(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "read")
        return await self._show(tenant, read_name(request, "receiver", self._limits))

    async def get_address(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "read")
        receiver, name = (read_name(request, field, self._limits) for field in ("receiver", "address"))
        found = await self._store.reader.run(lambda connection: receivers.read_receiver(connection, tenant, receiver))
        shown = [_show_address(one) for one in (found[1] if found else ()) if one.name == name]
        if not shown:
            raise RequestRefused(DispatchCode.ADDRESS_MISSING)
        return answer(shown[0])

    async def _show(self, tenant: str, name: str) -> web.Response:
        found = await self._store.reader.run(lambda connection: receivers.read_receiver(connection, tenant, name))
        if found is None:
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        row, addresses = found
        shown = [_show_address(one) for one in addresses]
        is_wanted, seen_ms = await self._store.reader.run(lambda connection: presence.read(connection, tenant, name))
        seen = {"connected": self._is_connected(tenant, name), "last_seen_ms": seen_ms} if is_wanted else {}
        return answer({"id": row.name, **msgspec.json.decode(row.attributes), "addresses": shown, **seen})

    async def delete(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "manage")
        name = read_name(request, "receiver", self._limits)
        if not await self._store.writer.run(lambda connection: receivers.delete_receiver(connection, tenant, name)):
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        await self._store.writer.empty_log()
        return web.Response(status=204)

    async def put_address(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "manage")
        receiver, name = (read_name(request, field, self._limits) for field in ("receiver", "address"))
        body, _ = read_body(await read_bytes(request), AddressBody)
        self._check_address(body.channel, body.value)
        form = await self._read_format(tenant, body)
        row = await self._store.writer.run(
            lambda connection: receivers.put_address(connection, tenant, receiver, name, body.channel, body.value, form)
        )
        if row is None:
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        return answer(row._asdict())

    async def delete_address(self, request: web.Request) -> web.Response:
        """Delete an address; queued deliveries to it fail."""
        tenant = await self._keys.read_tenant(request, "manage")
        receiver, name = (read_name(request, field, self._limits) for field in ("receiver", "address"))
        if not await self._store.writer.run(
            lambda connection: receivers.delete_address(connection, tenant, receiver, name)
        ):
            raise RequestRefused(DispatchCode.ADDRESS_MISSING)
        await self._store.writer.empty_log()
        return web.Response(status=204)

    async def _read_format(self, tenant: str, body: AddressBody) -> str:
        """The stored form of a webhook's body; raises RequestRefused."""
        form = body.format
        if form is None:
            return ""
        is_one = (form.preset is None) != (form.body is None)
        if body.channel != "webhook" or not is_one or (form.fields and form.preset is None):
            detail = "expected exactly one of preset and body, for a webhook; fields needs a preset"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/format")
        if form.body is not None:
            try:
                names = await self._renderer.of(tenant).list_variables([Source(form.body)])
            except RequestRefused as refused:
                raise RequestRefused(refused.code, refused.detail, pointer="/format/body") from refused
            if unknown := sorted(set(names) - {"notification", "receiver", "content"}):
                detail = f"{', '.join(unknown)} does not exist: expected notification, receiver and content"
                raise RequestRefused(DispatchCode.TEMPLATE_INVALID, detail, pointer="/format/body")
        return msgspec.json.encode(form).decode()

    async def import_lines(self, request: web.Request) -> web.Response:
        """Create or replace receivers and their addresses, line by line."""
        tenant = await self._keys.read_tenant(request, "manage")
        now_ms = time.time_ns() // 1_000_000

        async def store(chunk: list[tuple[int, ImportedReceiver]]) -> None:
            rows = [row for line, row in chunk if self._may_take(lines, line, row)]
            await self._store.writer.run(lambda connection: put_imported(connection, tenant, rows, now_ms), bulk=True)

        lines = Import(ImportedReceiver, store)
        return answer(await lines.run(request, read_number(request, "after_line")))

    def _may_take(self, lines: Import[ImportedReceiver], line: int, row: ImportedReceiver) -> bool:
        try:
            check_receiver(row)
            check_free(row.id, "/id")
            check_length(row.id, self._limits, "/id")
            for number, address in enumerate(row.addresses):
                check_length(address.id, self._limits, f"/addresses/{number}/id")
        except RequestRefused as refused:
            lines.reject(line, refused.code, refused.detail, refused.pointer)
            return False
        for number, address in enumerate(row.addresses):
            try:
                self._check_address(address.channel, address.value)
            except RequestRefused as refused:
                lines.reject(line, refused.code, refused.detail, f"/addresses/{number}{refused.pointer}")
                return False
        return True

    async def make_token(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "manage")
        name = read_name(request, "receiver", self._limits)
        found = await self._store.reader.run(lambda connection: receivers.find_receiver(connection, tenant, name))
        if found is None:
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        token, expires_ms = self._signing.sign_receiver(tenant, name, self._limits.receiver_token_ms)
        return answer({"token": token, "expires_ms": expires_ms})


def _show_address(one: receivers.AddressRow) -> dict[str, str]:
    return {"id": one.name, "channel": one.channel, "value": one.value, "state": one.state}


def patch_receiver(connection: sqlite3.Connection, tenant: str, name: str, patch: dict[str, Any], now_ms: int) -> None:
    """Merge a patch into the stored receiver; raises RequestRefused."""
    found = receivers.read_receiver(connection, tenant, name)
    if found is None:
        raise RequestRefused(DispatchCode.RECEIVER_MISSING)
    merged = merge(msgspec.json.decode(found[0].attributes), patch)
    body, _ = read_value(merged, ReceiverBody)
    check_receiver(body)
    receivers.put_receiver(connection, tenant, name, msgspec.json.encode(body), now_ms)


def merge(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    kept = dict(target) if isinstance(target, dict) else {}
    changed = {name: merge(kept.get(name), value) for name, value in patch.items() if value is not None}
    return {name: value for name, value in (kept | changed).items() if name not in patch or patch[name] is not None}


def check_receiver(body: ReceiverBody, where: str = "") -> None:
    """Raises RequestRefused if the zone does not exist."""
    if find_zone(body.zone or "") is None:
        detail = f"the zone {body.zone!r} does not exist: expected a name such as Europe/Berlin"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer=f"{where}/zone")


def put_imported(connection: sqlite3.Connection, tenant: str, rows: list[ImportedReceiver], now_ms: int) -> None:
    """Store one part of an import, in one unit."""
    wanted = {}
    for row in rows:  # of several lines about one receiver the last counts
        attributes = msgspec.to_builtins(row)
        name, _ = attributes.pop("id"), attributes.pop("addresses", None)
        wanted[name] = msgspec.json.encode(attributes)
    receivers.put_receivers(connection, tenant, wanted, now_ms)
    for row in rows:
        for address in row.addresses:
            receivers.put_address(connection, tenant, row.id, address.id, address.channel, address.value)
