"""The event feed and event webhooks over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..channels.webhook.http import HttpPoster
from ..clock import now_ms
from ..codes import DispatchCode
from ..errors import RequestRefused
from ..feed.hooks import make_event, post_event
from ..feed.watcher import Fresh
from ..pure.event_types import EVENT_TYPES
from ..stores.sqlite.feed import hooks
from ..stores.sqlite.feed.events import EventRow, list_events, read_newest, show_event, show_members
from ..stores.sqlite.store import SqliteStore
from ..tokens import SigningKey
from .answers import answer
from .bodies import ReplayEventsBody, WebhookBody, read_body
from .keys import KeyRing
from .requests import read_bytes, read_name, read_number
from .waiters import Waiters

EVENTS_PAGE_MAX = 500


class EventApi:
    """The handlers. `check_address` raises RequestRefused for a URL that must not be reached."""

    def __init__(
        self,
        store: SqliteStore,
        keys: KeyRing,
        limits: DispatchLimits,
        signing: SigningKey,
        poster: HttpPoster,
        check_address: Callable[[str, str], None],
    ) -> None:
        self._store, self._keys, self._limits, self._signing = store, keys, limits, signing
        self._poster, self._check_address = poster, check_address
        self.waiters = Waiters(limits.inbox_waiters_max)

    def take(self, fresh: Fresh) -> None:
        """Wake the requests that wait for events of a tenant."""
        for tenant in {row[0] for row in fresh.rows}:
            self.waiters.wake((tenant, ""))

    def list_routes(self) -> list[web.RouteDef]:
        path = "/v1/webhooks/{webhook}"
        return [
            web.get("/v1/events", self.get_events, allow_head=False),
            web.post("/v1/live-token", self.make_token),
            web.get("/v1/webhooks", self.list_webhooks, allow_head=False),
            web.get(path, self.get_webhook, allow_head=False),
            web.put(path, self.put_webhook),
            web.delete(path, self.delete_webhook),
            web.post(path + "/test", self.test_webhook),
            web.post(path + "/rotate", self.rotate_webhook),
            web.post(path + "/replay", self.replay_webhook),
        ]

    async def get_events(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "events")
        after = read_number(request, "after")
        limit = min(read_number(request, "limit", 100), EVENTS_PAGE_MAX) or 1
        types = _read_types([text for text in request.query.get("types", "").split(",") if text])
        detail = request.query.get("detail", "counts")
        if detail not in ("counts", "deliveries"):
            raise RequestRefused(DispatchCode.REQUEST_INVALID, "detail must be counts or deliveries")
        has_members = detail == "deliveries"
        wait_ms = min(read_number(request, "wait") * 1_000, self._limits.inbox_wait_ms_max)
        event = self.waiters.enter((tenant, "")) if wait_ms else None
        try:
            shown = await self._list(tenant, after, types, limit, has_members)
            if event is not None and not shown["events"]:
                await self.waiters.wait(event, wait_ms / 1_000)
                shown = await self._list(tenant, after, types, limit, has_members)
        finally:
            if event is not None:
                self.waiters.leave((tenant, ""), event)
        return answer(shown)

    async def make_token(self, request: web.Request) -> web.Response:
        """A token for `/$dispatch/TENANT/**` on the node, to read live counts."""
        tenant = await self._keys.read_tenant(request, "read")
        token, expires_ms = self._signing.sign_live(tenant, self._limits.receiver_token_ms)
        return answer({"token": token, "expires_ms": expires_ms})

    async def list_webhooks(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "read")
        found = await self._store.reader.run(lambda connection: hooks.list_hooks_of(connection, tenant))
        return answer({"webhooks": [_show_hook(hook) for hook in found]})

    async def get_webhook(self, request: web.Request) -> web.Response:
        hook = await self._find(request, "read")
        letters = await self._store.reader.run(lambda connection: hooks.list_letters(connection, hook.wid, 100))
        names = ("event", "part", "reason", "time_ms")
        return answer({**_show_hook(hook), "rejected": [dict(zip(names, letter, strict=True)) for letter in letters]})

    async def put_webhook(self, request: web.Request) -> web.Response:
        tenant, name = await self._keys.read_tenant(request, "manage"), read_name(request, "webhook", self._limits)
        body, _ = read_body(await read_bytes(request), WebhookBody)
        types = _read_types(body.types)
        try:
            self._check_address("webhook", body.url)
        except RequestRefused as refused:
            raise RequestRefused(refused.code, refused.detail, pointer="/url") from refused
        hook, is_new = await self._store.writer.run(
            lambda connection: hooks.put_hook(connection, tenant, name, body.url, types, body.detail)
        )
        shown = _show_hook(hook)
        return answer({**shown, "secret": hook.secret} if is_new else shown, 201 if is_new else 200)

    async def delete_webhook(self, request: web.Request) -> web.Response:
        tenant, name = await self._keys.read_tenant(request, "manage"), read_name(request, "webhook", self._limits)
        if not await self._store.writer.run(lambda connection: hooks.delete_hook(connection, tenant, name)):
            raise RequestRefused(DispatchCode.WEBHOOK_MISSING)
        return web.Response(status=204)

    async def test_webhook(self, request: web.Request) -> web.Response:
        """Send one test event at once; returns the endpoint's answer."""
        await self._keys.read_tenant(request, "manage")
        hook = await self._find(request, "manage")
        name = f"test_{now_ms()}"
        body = make_event(hook.tenant, name, "webhook.test", now_ms(), {})
        result, detail, _ = await post_event(self._poster, self._signing.sign_bytes, hook, name, body)
        return answer({"result": str(result), "detail": detail})

    async def rotate_webhook(self, request: web.Request) -> web.Response:
        tenant, name = await self._keys.read_tenant(request, "manage"), read_name(request, "webhook", self._limits)
        hook = await self._store.writer.run(lambda connection: hooks.rotate(connection, tenant, name, now_ms()))
        if hook is None:
            raise RequestRefused(DispatchCode.WEBHOOK_MISSING)
        return answer({**_show_hook(hook), "secret": hook.secret, "old_secret_until_ms": hook.old_until_ms})

    async def replay_webhook(self, request: web.Request) -> web.Response:
        tenant, name = await self._keys.read_tenant(request, "manage"), read_name(request, "webhook", self._limits)
        body, _ = read_body(await read_bytes(request), ReplayEventsBody)
        newest = await self._store.reader.run(read_newest)
        if body.after > newest:
            detail = f"the newest event is {newest}: expected the number of an event, which is not larger"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/after")
        if not await self._store.writer.run(lambda connection: hooks.replay(connection, tenant, name, body.after)):
            raise RequestRefused(DispatchCode.WEBHOOK_MISSING)
        return answer({"id": name, "after": body.after}, 202)

    async def _list(self, tenant: str, after: int, types: list[str], limit: int, has_members: bool) -> dict[str, Any]:
        def read(connection: Any) -> dict[str, Any]:
            rows, last, has_more = list_events(connection, tenant, after, types, limit)
            shown = [_show_event(row) for row in rows]
            if has_members:
                for row, one in zip(rows, shown, strict=True):
                    one["deliveries"] = show_members(connection, row)
            return {"events": shown, "after": last, "complete": not has_more}

        return await self._store.reader.run(read)

    async def _find(self, request: web.Request, scope: str) -> hooks.Hook:
        tenant, name = await self._keys.read_tenant(request, scope), read_name(request, "webhook", self._limits)
        found = await self._store.reader.run(lambda connection: hooks.list_hooks_of(connection, tenant, name))
        if not found:
            raise RequestRefused(DispatchCode.WEBHOOK_MISSING)
        return found[0]


def _show_event(row: EventRow) -> dict[str, Any]:
    return {"id": f"evt_{row.eid}", "type": row.type, "time_ms": row.time_ms, **show_event(row)}


def _show_hook(hook: hooks.Hook) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": hook.name, "url": hook.url, "types": hook.type_list, "detail": hook.detail}
    shown |= {"state": hook.state, "cursor": hook.cursor}
    return {**shown, "failures": hook.failures, "due_ms": hook.due_ms, "reason": hook.reason} if hook.reason else shown


def _read_types(types: list[str]) -> list[str]:
    for text in types:
        if text not in EVENT_TYPES:
            detail = f"{text!r:.80} is not a type of an event: expected {', '.join(EVENT_TYPES)}"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail, pointer="/types")
    if len(types) > 50:
        raise RequestRefused(DispatchCode.REQUEST_INVALID, "expected at most 50 types", pointer="/types")
    return types
