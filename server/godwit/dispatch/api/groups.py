"""Groups over HTTP: create, show, delete, subscribe, import a version, and switch to it."""

from __future__ import annotations

import sqlite3
from functools import partial

from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..codes import DispatchCode
from ..errors import RequestRefused
from ..stores.sqlite import groups
from ..stores.sqlite.manage import versions
from ..stores.sqlite.store import SqliteStore
from .answers import answer
from .bodies import ImportedSubscription, VersionBody, read_body
from .keys import KeyRing
from .lines import Import
from .requests import read_bytes, read_name, read_number

DELETED_AT_ONCE = 2_000
"""Subscriptions that one unit deletes: accepts wait for it."""


class GroupApi:
    """The handlers."""

    def __init__(self, store: SqliteStore, keys: KeyRing, limits: DispatchLimits) -> None:
        self._store, self._keys, self._limits = store, keys, limits

    def list_routes(self) -> list[web.RouteDef]:
        path = "/v1/groups/{group}"
        return [
            web.put(path, self.put),
            web.get(path, self.get, allow_head=False),
            web.delete(path, self.delete),
            web.put(path + "/subscriptions/{receiver}", self.subscribe),
            web.get(path + "/subscriptions/{receiver}", self.get_subscription, allow_head=False),
            web.delete(path + "/subscriptions/{receiver}", self.unsubscribe),
            web.post(path + "/import", self.import_lines),
            web.put(path + "/version", self.set_version),
        ]

    async def put(self, request: web.Request) -> web.Response:
        tenant, name = await self._read_names(request, "manage")
        is_new = await self._store.writer.run(lambda connection: groups.put_group(connection, tenant, name))
        return answer({"id": name}, 201 if is_new else 200)

    async def get(self, request: web.Request) -> web.Response:
        tenant, name = await self._read_names(request, "read")
        found = await self._store.reader.run(lambda connection: groups.count_group(connection, tenant, name))
        if found is None:
            raise RequestRefused(DispatchCode.GROUP_MISSING)
        return answer({"id": name, "version": found[0], "receivers": found[1], "last_version": found[2]})

    async def delete(self, request: web.Request) -> web.Response:
        tenant, name = await self._read_names(request, "manage")
        page = partial(groups.delete_some, tenant=tenant, name=name, limit=DELETED_AT_ONCE)
        is_left = await self._store.writer.run(page)
        if is_left is None:
            raise RequestRefused(DispatchCode.GROUP_MISSING)
        while is_left:
            is_left = await self._store.writer.run(page, bulk=True)
        return web.Response(status=204)

    async def subscribe(self, request: web.Request) -> web.Response:
        tenant, name = await self._read_names(request, "manage")
        receiver = read_name(request, "receiver", self._limits)
        unknown = await self._store.writer.run(
            lambda connection: groups.subscribe(connection, tenant, name, (receiver,), None)
        )
        if unknown is None:
            raise RequestRefused(DispatchCode.GROUP_MISSING)
        if unknown:
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        return answer({"group": name, "receiver": receiver})

    async def get_subscription(self, request: web.Request) -> web.Response:
        """Whether a receiver is in the current version of a group."""
        tenant, name = await self._read_names(request, "read")
        receiver = read_name(request, "receiver", self._limits)
        found = await self._store.reader.run(
            lambda connection: groups.is_subscribed(connection, tenant, name, receiver)
        )
        if found is None:
            raise RequestRefused(DispatchCode.GROUP_MISSING)
        if not found:
            raise RequestRefused(DispatchCode.RECEIVER_MISSING, "the receiver is not in the group")
        return answer({"group": name, "receiver": receiver})

    async def unsubscribe(self, request: web.Request) -> web.Response:
        tenant, name = await self._read_names(request, "manage")
        receiver = read_name(request, "receiver", self._limits)
        await self._store.writer.run(lambda connection: groups.unsubscribe(connection, tenant, name, receiver))
        return web.Response(status=204)

    async def import_lines(self, request: web.Request) -> web.Response:
        """Import lines into the version of the query, which must be larger than the current one."""
        tenant, name = await self._read_names(request, "manage")
        version = read_number(request, "version", -1)
        found = await self._store.reader.run(lambda connection: groups.find_group(connection, tenant, name))
        if found is None:
            raise RequestRefused(DispatchCode.GROUP_MISSING)
        gid, current = found
        if version <= current:
            detail = f"version must be larger than the current one, {current}: import a new version, then switch to it"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail)

        async def store(chunk: list[tuple[int, ImportedSubscription]]) -> None:
            names = [row.receiver for _, row in chunk]
            unknown = await self._store.writer.run(
                lambda connection: groups.subscribe(connection, tenant, name, names, version), bulk=True
            )
            if unknown is None:
                raise RequestRefused(DispatchCode.GROUP_MISSING)
            missing = set(unknown)
            for line, row in chunk:
                if row.receiver in missing:
                    lines.reject(line, DispatchCode.RECEIVER_MISSING, pointer="/receiver")

        lines, after_line = Import(ImportedSubscription, store), read_number(request, "after_line")
        await self._store.writer.run(lambda connection: versions.begin_import(connection, gid, version), bulk=True)
        imported = await lines.run(request, after_line)
        await self._store.writer.run(lambda connection: versions.end_import(connection, gid, version), bulk=True)
        return answer({**imported, "version": version})

    async def set_version(self, request: web.Request) -> web.Response:
        """Make a version current whose import has ended."""
        tenant, name = await self._read_names(request, "manage")
        body, _ = read_body(await read_bytes(request), VersionBody)
        why = await self._store.writer.run(lambda connection: switch(connection, tenant, name, body.version))
        if why is None:
            raise RequestRefused(DispatchCode.GROUP_MISSING)
        if why:
            raise RequestRefused(DispatchCode.GROUP_VERSION_MISSING, why, pointer="/version")
        return answer({"id": name, "version": body.version})

    async def _read_names(self, request: web.Request, scope: str) -> tuple[str, str]:
        return await self._keys.read_tenant(request, scope), read_name(request, "group", self._limits)


def switch(connection: sqlite3.Connection, tenant: str, name: str, version: int) -> str | None:
    """Make a version current; why not, empty if it is done. None: no such group."""
    why = versions.may_switch(connection, tenant, name, version)
    if why == "":
        groups.set_version(connection, tenant, name, version)
    return why
