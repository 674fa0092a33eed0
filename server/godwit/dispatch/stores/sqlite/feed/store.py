"""The event feed with the embedded store's writer and readers, for the roles of the feed."""

from __future__ import annotations

from typing import Any

from .....rows.feedback import FeedbackRow
from ....feed.hooks import make_event
from ....feed.watcher import Fresh
from ..store import SqliteStore
from . import hooks
from .events import MEMBERS_SHOWN_MAX, list_events, read_fresh, show_event, show_members
from .feedback import read_rows, read_written, set_written


class FeedStore:
    """Implements HookStore and FeedbackStore."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def read_fresh(self, after: int) -> Fresh:
        return Fresh(*await self._store.reader.run(lambda connection: read_fresh(connection, after)))

    async def read_written(self) -> int:
        return await self._store.reader.run(read_written)

    async def set_written(self, last: int) -> None:
        await self._store.writer.run(lambda connection: set_written(connection, last))

    async def read_rows(self, after: int, limit: int) -> tuple[list[FeedbackRow], int]:
        return await self._store.reader.run(lambda connection: read_rows(connection, after, limit))

    async def list_hooks(self, now_ms: int) -> list[hooks.Hook]:
        return await self._store.reader.run(lambda connection: hooks.list_ready(connection, now_ms))

    async def read_parts(self, hook: hooks.Hook, limit: int) -> tuple[list[tuple[int, str, dict[str, Any]]], int]:
        return await self._store.reader.run(lambda connection: read_parts(connection, hook, limit))

    async def move(self, hook: hooks.Hook, cursor: int) -> hooks.Hook | None:
        return await self._store.writer.run(lambda connection: hooks.move(connection, hook, cursor))

    async def fail(self, hook: hooks.Hook, failures: int, since_ms: int, due_ms: int, reason: str) -> None:
        await self._store.writer.run(
            lambda connection: hooks.fail(connection, hook, failures, since_ms, due_ms, reason)
        )

    async def disable(self, hook: hooks.Hook, reason: str, now_ms: int) -> None:
        await self._store.writer.run(lambda connection: hooks.disable(connection, hook, reason, now_ms))

    async def bury(self, hook: hooks.Hook, eid: int, part: str, reason: str, now_ms: int) -> None:
        await self._store.writer.run(lambda connection: hooks.bury(connection, hook, eid, part, reason, now_ms))


def read_parts(connection: Any, hook: hooks.Hook, limit: int) -> tuple[list[tuple[int, str, dict[str, Any]]], int]:
    """Events after a webhook's cursor as CloudEvents. An event with many deliveries is split into parts, if the webhook
    lists deliveries.
    """
    rows, last, _ = list_events(connection, hook.tenant, hook.cursor, hook.type_list, limit)
    parts = []
    for row in rows:
        name, data = f"evt_{row.eid}", show_event(row)
        if hook.detail == "counts" or not row.size:
            parts.append((row.eid, name, make_event(hook.tenant, name, row.type, row.time_ms, data)))
            continue
        members = show_members(connection, row)
        for number, begin in enumerate(range(0, len(members), MEMBERS_SHOWN_MAX)):
            part = name if len(members) <= MEMBERS_SHOWN_MAX else f"{name}.{number}"
            some = {**data, "deliveries": members[begin : begin + MEMBERS_SHOWN_MAX]}
            parts.append((row.eid, part, make_event(hook.tenant, part, row.type, row.time_ms, some)))
    return parts, last
