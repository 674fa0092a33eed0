"""Event webhooks: each is a cursor over its tenant's events, sent in order, one at a time.

While an endpoint is down, one probe is sent at a time. After its recovery, events continue from its cursor, one after the
other. If a crash happens between a 2xx and the cursor's update, the event is sent again with the same `webhook-id`. An
event that is rejected for good becomes a dead letter and is skipped.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

import msgspec

from ...logs import read_logger
from ..channels.webhook.envelope import SignBytes, sign_all
from ..channels.webhook.http import HttpPoster
from ..clock import now_ms
from ..model import Result
from ..stores.sqlite.feed.hooks import Hook
from .backoff import is_given_up, next_probe_ms

BATCH_EVENTS = 50
TENANT_SENDS_MAX = 16
"""Webhooks of one tenant that are sent to at once: its slow endpoints leave connections to others."""


class HookStore(Protocol):
    """The methods of the store that this role needs."""

    async def list_hooks(self, now_ms: int) -> list[Hook]:
        """Active webhooks that are due and have events to send."""

    async def read_parts(self, hook: Hook, limit: int) -> tuple[list[tuple[int, str, dict[str, Any]]], int]:
        """Events after the cursor, in parts (number, id, body), and the number of the last event read."""

    async def move(self, hook: Hook, cursor: int) -> Hook | None:
        """Everything up to `cursor` was sent. Returns the stored webhook; None if it was replayed, moved or deleted meanwhile."""

    async def fail(self, hook: Hook, failures: int, since_ms: int, due_ms: int, reason: str) -> None:
        """The endpoint failed; its next probe is due at `due_ms`."""

    async def disable(self, hook: Hook, reason: str, now_ms: int) -> None:
        """Send nothing more until the webhook is stored again."""

    async def bury(self, hook: Hook, eid: int, part: str, reason: str, now_ms: int) -> None:
        """Store an event that was rejected for good."""


class EventHooks:
    """Runs until it is cancelled; call `stir` when there are events."""

    def __init__(self, store: HookStore, poster: HttpPoster, sign_bytes: SignBytes, sweep_s: float) -> None:
        self._store, self._poster, self._sign_bytes, self._sweep_s = store, poster, sign_bytes, sweep_s
        self._stirred = asyncio.Event()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._sends: Counter[str] = Counter()

    def stir(self) -> None:
        """There may be something to send."""
        self._stirred.set()

    async def run(self) -> None:
        """Start a task for each webhook that is due and has events to send."""
        try:
            while True:
                self._stirred.clear()
                for hook in await self._store.list_hooks(now_ms()):
                    if hook.wid not in self._tasks and self._sends[hook.tenant] < TENANT_SENDS_MAX:
                        self._sends[hook.tenant] += 1
                        self._tasks[hook.wid] = asyncio.create_task(self._drain(hook))
                        self._tasks[hook.wid].add_done_callback(partial(self._end, hook))
                try:
                    async with asyncio.timeout(self._sweep_s):
                        await self._stirred.wait()
                except TimeoutError:
                    continue
        finally:
            for task in self._tasks.values():
                task.cancel()

    async def stop(self) -> None:
        """Close the connections, after `run` was cancelled."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._poster.close()

    def _end(self, hook: Hook, task: asyncio.Task[None]) -> None:
        del self._tasks[hook.wid]
        self._sends -= Counter({hook.tenant: 1})
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            read_logger().error("dispatch_webhook_failed", webhook=hook.wid, reason=f"{type(error).__name__}: {error}")
        else:
            self.stir()  # it may have been replayed or put elsewhere while this task held it

    async def _drain(self, hook: Hook) -> None:
        """Send a webhook's events until it fails or was changed."""
        left: Hook | None = hook
        while left is not None:
            left = await self._send_batch(left)

    async def _send_batch(self, hook: Hook) -> Hook | None:
        """Send some events. Returns the stored webhook; None: send nothing more for now."""
        parts, last = await self._store.read_parts(hook, BATCH_EVENTS)
        for number, (eid, name, body) in enumerate(parts):
            result, detail, after_ms = await self._post(hook, name, body)
            if result in (Result.TEMPORARY, Result.DOUBT, Result.THROTTLED):
                await self._fail(hook, detail, after_ms)
                return None
            if result is Result.ADDRESS:
                await self._store.disable(hook, detail, now_ms())
                return None
            if result is Result.CONTENT:
                await self._store.bury(hook, eid, name, detail, now_ms())
            is_whole = number + 1 == len(parts) or parts[number + 1][0] != eid
            if is_whole:
                moved = await self._store.move(hook, eid)
                if moved is None or (moved.types, moved.detail) != (hook.types, hook.detail):
                    return moved
                hook = moved
        return None if last <= hook.cursor else await self._store.move(hook, last)

    async def _post(self, hook: Hook, name: str, body: dict[str, Any]) -> tuple[Result, str, int]:
        """Post one event. An unexpected error counts as a failure, so that the endpoint is not asked at each sweep."""
        try:
            return await post_event(self._poster, self._sign_bytes, hook, name, body)
        except Exception as error:
            kind = type(error).__name__
            read_logger().error("dispatch_webhook_failed", webhook=hook.wid, reason=f"{kind}: {error}")
            return Result.DOUBT, kind, 0

    async def _fail(self, hook: Hook, detail: str, after_ms: int) -> None:
        now, failures = now_ms(), hook.failures + 1
        since_ms = hook.failing_since_ms if hook.failures else now
        if is_given_up(now, since_ms):
            return await self._store.disable(hook, detail, now)
        due_ms = next_probe_ms(now, failures, random.random(), after_ms)
        return await self._store.fail(hook, failures, since_ms, due_ms, detail)


async def post_event(
    poster: HttpPoster, sign_bytes: SignBytes, hook: Hook, name: str, body: dict[str, Any]
) -> tuple[Result, str, int]:
    """One POST of one event, or of a part of it."""
    encoded = msgspec.json.encode(body)
    secrets = list_secrets(hook, now_ms())
    headers = {
        "Content-Type": "application/cloudevents+json; charset=utf-8",
        **sign_all(secrets, name, now_ms() // 1_000, encoded, sign_bytes),
    }
    return await poster.post(hook.url, encoded, headers, tenant=hook.tenant)


def list_secrets(hook: Hook, now: int) -> Sequence[str]:
    """The secret, and for a day after a rotation the previous one."""
    return (hook.secret, hook.old_secret) if hook.old_secret and now < hook.old_until_ms else (hook.secret,)


def make_event(tenant: str, name: str, kind: str, time_ms: int, data: dict[str, Any]) -> dict[str, Any]:
    """An event as a CloudEvent."""
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": name,
        "source": f"/godwit/{tenant}",
        "type": f"godwit.{kind}",
        "time": datetime.fromtimestamp(time_ms / 1_000, UTC).isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": data,
    }
    if any(row["possible_duplicate"] for row in data.get("deliveries", ())):
        event["possibleduplicate"] = True
    return event
