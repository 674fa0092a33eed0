"""Lists over HTTP, page by page: notifications, receivers, and reasons of failed deliveries."""

from __future__ import annotations

from aiohttp import web

from ....config.dispatch_limits import DispatchLimits
from ...codes import DispatchCode
from ...errors import RequestRefused
from ...stores.sqlite.accept import show_counts
from ...stores.sqlite.groups import find_group
from ...stores.sqlite.manage import lists
from ...stores.sqlite.store import SqliteStore
from ..answers import answer
from ..keys import KeyRing
from ..requests import read_number

PAGE = 50
PAGE_MAX = 200
STATES = ("", "accepted", "running", "paused", "settled", "cancelled")


class ListApi:
    """The handlers."""

    def __init__(self, store: SqliteStore, keys: KeyRing, limits: DispatchLimits) -> None:
        self._store, self._keys, self._limits = store, keys, limits

    def list_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/notifications", self.list_notifications, allow_head=False),
            web.get("/v1/receivers", self.list_receivers, allow_head=False),
            web.get("/v1/dead-letters/reasons", self.count_reasons, allow_head=False),
        ]

    async def list_notifications(self, request: web.Request) -> web.Response:
        """Notifications, the newest first. `after` of the answer requests the next page; 0: there is none."""
        tenant = await self._keys.read_tenant(request, "read")
        state, after, limit = request.query.get("state", ""), read_number(request, "after"), _read_limit(request)
        if state not in STATES:
            expected = ", ".join(name for name in STATES if name)
            raise RequestRefused(
                DispatchCode.REQUEST_INVALID, f"unknown state {state[:40]!r}: expected one of {expected}"
            )
        gid = await self._find_group(tenant, request.query.get("group"))
        found, following = await self._store.reader.run(
            lambda connection: lists.list_notifications(connection, tenant, state, gid, after, limit)
        )
        shown = [
            {
                "id": row.id,
                "title": title,
                "state": row.state,
                "accepted_ms": row.accepted_ms,
                "receivers": row.receivers,
                "counts": show_counts(row),
            }
            for row, title in found
        ]
        return answer({"notifications": shown, "after": following})

    async def _find_group(self, tenant: str, name: str | None) -> int | None:
        if name is None:
            return None
        found = await self._store.reader.run(lambda connection: find_group(connection, tenant, name))
        if found is None:
            raise RequestRefused(DispatchCode.GROUP_MISSING)
        return found[0]

    async def list_receivers(self, request: web.Request) -> web.Response:
        """Receivers by name. `prefix`: only names that begin with it; `after`: the last name of the previous page."""
        tenant = await self._keys.read_tenant(request, "read")
        prefix, after, limit = request.query.get("prefix", ""), request.query.get("after", ""), _read_limit(request)
        if max(len(prefix), len(after)) > self._limits.name_characters_max or not _is_text(prefix + after):
            raise RequestRefused(
                DispatchCode.REQUEST_INVALID, "prefix and after are names of receivers, or their beginnings"
            )
        rows, has_more = await self._store.reader.run(
            lambda connection: lists.list_receivers(connection, tenant, prefix, after, limit)
        )
        shown = [{"id": name, "unread": unread, "items": items} for name, unread, items in rows]
        return answer({"receivers": shown, "after": rows[-1][0] if has_more else None})

    async def count_reasons(self, request: web.Request) -> web.Response:
        """Failed deliveries by channel and reason. `complete` is false if only the newest 100,000 of all tenants were counted."""
        tenant = await self._keys.read_tenant(request, "read")
        reasons, is_complete = await self._store.reader.run(lambda connection: lists.count_reasons(connection, tenant))
        return answer({"reasons": [reason._asdict() for reason in reasons], "complete": is_complete})


def _read_limit(request: web.Request) -> int:
    return min(read_number(request, "limit", PAGE), PAGE_MAX) or 1


def _is_text(text: str) -> bool:
    return all(not 0xD800 <= ord(letter) <= 0xDFFF for letter in text)
