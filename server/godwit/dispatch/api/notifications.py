"""Notifications over HTTP: accept one, show one with its counts, list its deliveries.

PUT names the id. POST with Idempotency-Key is PUT with an id derived from tenant and key, so both are one mechanism and one row.
Invariant: 202 is answered after the commit, and a request that was refused accepted nothing.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..codes import DispatchCode
from ..errors import RequestRefused
from ..stores.sqlite.accept import Draft, read_deliveries, read_notification
from ..stores.sqlite.store import SqliteStore
from .answers import answer
from .bodies import NewReceiver, NotificationBody, Recipients, read_body
from .keys import KeyRing

DELIVERIES_PAGE = 500


class NotificationApi:
    """The handlers; `wake` is called for each notification that was accepted."""

    def __init__(self, store: SqliteStore, keys: KeyRing, limits: DispatchLimits, wake: Callable[[], None]) -> None:
        self._store, self._keys, self._limits, self._wake = store, keys, limits, wake

    def list_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/notifications", self.post),
            web.put("/v1/notifications/{id}", self.put),
            web.get("/v1/notifications/{id}", self.get, allow_head=False),
            web.get("/v1/notifications/{id}/deliveries", self.list_deliveries, allow_head=False),
        ]

    async def post(self, request: web.Request) -> web.Response:
        tenant = await self._read_tenant(request, "send")
        key = request.headers.get("Idempotency-Key")
        if key is not None and not 1 <= len(key) <= self._limits.name_characters_max:
            detail = f"Idempotency-Key must have 1 to {self._limits.name_characters_max} characters"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail)
        name = secrets.token_hex(12) if key is None else hashlib.sha256(f"{tenant}\0{key}".encode()).hexdigest()[:32]
        return await self._accept(request, tenant, name)

    async def put(self, request: web.Request) -> web.Response:
        tenant = await self._read_tenant(request, "send")
        return await self._accept(request, tenant, read_name(request, "id", self._limits))

    async def get(self, request: web.Request) -> web.Response:
        tenant = await self._read_tenant(request, "read")
        name = request.match_info["id"]
        row = await self._store.reader.run(lambda connection: read_notification(connection, tenant, name))
        if row is None:
            raise RequestRefused(DispatchCode.NOTIFICATION_UNKNOWN)
        counts: dict[str, dict[str, int]] = {}
        for channel, state, count in row.counts:
            counts.setdefault(channel, {})[state] = count
        shown = {"id": row.id, "state": row.state, "accepted_ms": row.accepted_ms, "expires_ms": row.expires_ms}
        return answer({**shown, "receivers": row.receivers, "counts": counts})

    async def list_deliveries(self, request: web.Request) -> web.Response:
        tenant = await self._read_tenant(request, "read")
        name, after = request.match_info["id"], read_number(request, "after")
        found = await self._store.reader.run(
            lambda connection: read_deliveries(connection, tenant, name, after, DELIVERIES_PAGE)
        )
        if found is None:
            raise RequestRefused(DispatchCode.NOTIFICATION_UNKNOWN)
        rows, following = found
        return answer({"deliveries": [row._asdict() for row in rows], "after": following})

    async def _read_tenant(self, request: web.Request, scope: str) -> str:
        authorization = request.headers.get("Authorization", "")
        return (await self._keys.read_caller(authorization, request.remote or "", scope)).tenant

    async def _accept(self, request: web.Request, tenant: str, name: str) -> web.Response:
        body, fingerprint = read_body(await request.read(), NotificationBody)
        now_ms = time.time_ns() // 1_000_000
        expires_ms = now_ms + (self._limits.expires_ms if body.expires_s is None else body.expires_s * 1_000)
        to = self._read_recipients(body.to)
        content = msgspec.json.encode(body.content)
        draft = Draft(tenant, name, fingerprint, content, to.names, to.new, to.is_single, expires_ms, to.group)
        accepted = await self._store.accept(draft, now_ms)
        if accepted.is_conflict:
            raise RequestRefused(DispatchCode.NOTIFICATION_CONFLICT)
        if accepted.lacks_group:
            raise RequestRefused(DispatchCode.GROUP_UNKNOWN, pointer="/to/group")
        if accepted.unknown and to.is_single:
            raise RequestRefused(DispatchCode.RECEIVER_UNKNOWN, pointer="/to/receiver")
        self._wake()
        shown: dict[str, object] = {"id": name, "state": "accepted"}
        if accepted.is_duplicate:
            shown["repeat"] = True
        if accepted.unknown:
            shown["unknown"] = accepted.unknown
        return answer(shown, 202)

    def _read_recipients(self, to: Recipients) -> _Recipients:
        given = [one for one in (to.receiver, to.receivers, to.group) if one is not None]
        if len(given) != 1 or (to.except_ and to.group is None):
            detail = "expected exactly one of receiver, receivers and group; except goes with a group"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/to")
        if isinstance(to.receiver, NewReceiver):
            attributes = msgspec.to_builtins(to.receiver)
            name = attributes.pop("id")
            return _Recipients((name,), ((name, msgspec.json.encode(attributes)),), is_single=True)
        if to.receiver is not None:
            return _Recipients((to.receiver,), is_single=True)
        names = tuple(to.receivers or to.except_)
        if len(names) > self._limits.receivers_per_notification_max:
            detail = f"expected at most {self._limits.receivers_per_notification_max:,} receivers"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/to/receivers")
        return _Recipients(names, group=to.group)


class _Recipients(NamedTuple):
    names: tuple[str, ...]
    new: tuple[tuple[str, bytes], ...] = ()
    is_single: bool = False
    group: str | None = None


def read_name(request: web.Request, field: str, limits: DispatchLimits) -> str:
    """A name of the path; raises RequestRefused."""
    name = request.match_info[field]
    has_control = any(char < " " or char == "\x7f" for char in name)
    if not 1 <= len(name) <= limits.name_characters_max or has_control or "/" in name or name in (".", ".."):
        detail = f"{field} must be 1 to {limits.name_characters_max} printable characters without a slash"
        raise RequestRefused(DispatchCode.REQUEST_INVALID, detail)
    return name


def read_number(request: web.Request, field: str, default: int = 0) -> int:
    """A whole number of the query; raises RequestRefused."""
    text = request.query.get(field)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise RequestRefused(DispatchCode.REQUEST_INVALID, f"{field} must be a whole number")
    return int(text)
