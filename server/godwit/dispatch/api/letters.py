"""Cancel, recall, dead letters and replay over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import get_args

from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..clock import now_ms
from ..codes import DispatchCode
from ..errors import RequestRefused
from ..model import DeliveryKey, InboxItem, State
from ..pure.items import is_number
from ..stores.sqlite import ending
from ..stores.sqlite.inbox import recall_some
from ..stores.sqlite.manage import attempts, deliveries, pausing
from ..stores.sqlite.store import SqliteStore
from .answers import answer
from .bodies import Channel, ReplayBody, read_body
from .keys import KeyRing, check_own
from .requests import read_bytes

LETTERS_PAGE = 500


class LetterApi:
    """The handlers."""

    def __init__(
        self,
        store: SqliteStore,
        keys: KeyRing,
        limits: DispatchLimits,
        announce: Callable[[Sequence[InboxItem]], None],
        look_for_due: Callable[[Collection[str]], None],
    ) -> None:
        self._store, self._keys, self._limits, self._announce = store, keys, limits, announce
        self._look_for_due = look_for_due

    def list_routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/notifications/{id}/cancel", self.cancel),
            web.post("/v1/notifications/{id}/recall", self.recall),
            web.post("/v1/notifications/{id}/resume", self.resume),
            web.get("/v1/deliveries/{delivery}", self.get_delivery, allow_head=False),
            web.post("/v1/deliveries/{delivery}/retry", self.retry),
            web.get("/v1/dead-letters", self.list_dead, allow_head=False),
            web.post("/v1/dead-letters/replay", self.replay),
        ]

    async def cancel(self, request: web.Request) -> web.Response:
        """End what has not been sent. Raises RequestRefused if everything had ended."""
        name, (_, count) = request.match_info["id"], await self._cancel(request)
        return answer({"id": name, "state": "cancelled", "cancelled": count})

    async def recall(self, request: web.Request) -> web.Response:
        """Cancel a notification, and withdraw its items from inboxes, page by page."""
        name, (nid, count) = request.match_info["id"], await self._cancel(request, also_settled=True)
        recalled, after = 0, 0
        while True:
            items, after = await self._store.writer.run(
                partial(recall_some, nid=nid, after=after, limit=LETTERS_PAGE), bulk=True
            )
            if not after:
                break
            recalled += len(items)
            self._announce(items)
        return answer({"id": name, "state": "cancelled", "cancelled": count, "recalled": recalled})

    async def resume(self, request: web.Request) -> web.Response:
        """Send deliveries that wait because bodies did not render, after the template was corrected. Failed ones are sent
        again by a replay.
        """
        tenant, name = await self._read_own(request)
        time_ms = now_ms()
        resumed = await self._store.writer.run(lambda connection: pausing.resume(connection, tenant, name, time_ms))
        if resumed is None:
            raise RequestRefused(DispatchCode.NOTIFICATION_UNKNOWN)
        released, after = 0, 0
        while resumed.is_live:  # also where no job was paused: an earlier resume may have been cut before its last page
            count, last = await self._store.writer.run(
                partial(pausing.release_some, resumed=resumed, after=after, limit=LETTERS_PAGE, now_ms=time_ms),
                bulk=True,
            )
            released, after = released + count, last
            if not last:
                break
        self._look_for_due(get_args(Channel) if released else resumed.channels)
        return answer({"id": name, "resumed": resumed.channels, "released": released})

    async def _cancel(self, request: web.Request, *, also_settled: bool = False) -> tuple[int, int]:
        """Cancel a notification, and end its unsent deliveries page by page; its number, and theirs."""
        tenant, name = await self._read_own(request)
        found = await self._store.writer.run(
            lambda connection: ending.cancel(connection, tenant, name, also_settled=also_settled)
        )
        if found is None:
            raise RequestRefused(DispatchCode.NOTIFICATION_UNKNOWN)
        if found.is_settled:
            raise RequestRefused(DispatchCode.NOTIFICATION_SETTLED)
        nid, count, after = found.nid, 0, 0
        while True:
            page = partial(ending.cancel_some, nid=nid, after=after, limit=LETTERS_PAGE, now_ms=now_ms())
            cancelled, after = await self._store.writer.run(page, bulk=True)
            count += cancelled
            if not after:
                return nid, count

    async def _read_own(self, request: web.Request) -> tuple[str, str]:
        """Tenant and id of the notification of a request. Raises RequestRefused for a test key with another key's notification."""
        caller, name = await self._keys.read_request(request, "send"), request.match_info["id"]
        if caller.is_test:
            await check_own(self._store, caller.tenant, name)
        return caller.tenant, name

    async def get_delivery(self, request: web.Request) -> web.Response:
        """One delivery with its attempts."""
        caller = await self._keys.read_request(request, "read")
        key, row, notification = await self._find(request, caller.tenant)
        if caller.is_test:
            await check_own(self._store, caller.tenant, notification)
        found = await self._store.reader.run(lambda connection: attempts.list_attempts(connection, key))
        shown = [attempt._asdict() for attempt in found]
        return answer({**row._asdict(), "notification": notification, "attempts": shown})

    async def retry(self, request: web.Request) -> web.Response:
        """Send one delivery again: at once if it waits, or although it failed."""
        key, row, _ = await self._find(request, await self._keys.read_tenant(request, "send"))
        time_ms = now_ms()
        expires_ms = time_ms + self._limits.expires_ms
        if not await self._store.writer.run(lambda connection: deliveries.retry(connection, key, time_ms, expires_ms)):
            raise RequestRefused(DispatchCode.DELIVERY_NOT_RETRYABLE)
        self._look_for_due((key.channel,))
        return answer({"id": row.id, "state": State.DEFERRED.label}, 202)

    async def _find(self, request: web.Request, tenant: str) -> tuple[DeliveryKey, deliveries.DeliveryRow, str]:
        name = request.match_info["delivery"]
        found = await self._store.reader.run(lambda connection: deliveries.find_delivery(connection, tenant, name))
        if found is None:
            raise RequestRefused(DispatchCode.DELIVERY_MISSING)
        return found

    async def list_dead(self, request: web.Request) -> web.Response:
        tenant = await self._keys.read_tenant(request, "read")
        reason, after = request.query.get("reason"), _read_cursor(request.query.get("after", "0.0..0"))
        letters, following = await self._store.reader.run(
            lambda connection: ending.list_dead(connection, tenant, reason, after, LETTERS_PAGE)
        )
        return answer(
            {
                "dead_letters": [letter._asdict() for letter in letters],
                "after": following and ".".join(map(str, following)),
            }
        )

    async def replay(self, request: web.Request) -> web.Response:
        """Replay at most `limit` dead letters at once, to bound the rate."""
        tenant = await self._keys.read_tenant(request, "send")
        body, _ = read_body(await read_bytes(request) or b"{}", ReplayBody)
        time_ms = now_ms()
        expires_ms = time_ms + self._limits.expires_ms
        count = await self._store.writer.run(
            lambda connection: ending.replay(
                connection,
                tenant,
                ending.Replayed(State[body.state.upper()], body.channel, body.reason, body.notification),
                body.limit,
                time_ms,
                expires_ms,
                is_dry=body.dry_run,
            )
        )
        return answer({"would_replay": count}) if body.dry_run else answer({"replayed": count}, 202)


def _read_cursor(text: str) -> DeliveryKey:
    """The last delivery of the previous page; raises RequestRefused."""
    parts = text.split(".")
    numbers = [part for number, part in enumerate(parts) if number != 2]
    if len(parts) != 4 or not all(map(is_number, numbers)):
        raise RequestRefused(DispatchCode.REQUEST_INVALID, "after must be the value of after in the previous answer")
    return DeliveryKey(int(parts[0]), int(parts[1]), parts[2], int(parts[3]))
