"""A receiver's own inbox over HTTP: fetch, wait, counts and marks, with the receiver's token.

`after` returns changes since a position, oldest first; `before` pages back through items. An answer is complete up to the
head in it. A position of another epoch restarts from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from ...config.dispatch_limits import DispatchLimits
from ..clock import now_ms
from ..codes import DispatchCode
from ..errors import RequestRefused
from ..model import Flag, InboxItem
from ..pure.items import parse_position, show_head, show_item
from ..pure.subjects import inbox_subject
from ..stores.sqlite import inbox
from ..stores.sqlite.many.marks import DELIVERED, Call, Chosen, Position
from ..stores.sqlite.store import SqliteStore
from ..tokens import SigningKey
from .answers import answer
from .bodies import MarkBody, read_body
from .requests import read_bytes, read_number
from .waiters import Waiters

MARKS: dict[str, tuple[int, int]] = {
    DELIVERED: (0, 0),
    "seen": (Flag.SEEN, 0),
    "read": (Flag.READ | Flag.SEEN, 0),
    "unread": (0, Flag.READ),
    "archived": (Flag.ARCHIVED, 0),
    "unarchived": (0, Flag.ARCHIVED),
    "confirmed": (Flag.CONFIRMED | Flag.SEEN, 0),
}
"""The flags that each mark sets and clears."""

_GONE = Flag.ARCHIVED | Flag.RECALLED
STATES: dict[str, inbox.Filter] = {
    "": inbox.Filter(),
    "active": inbox.Filter(without=_GONE),
    "unread": inbox.Filter(without=_GONE | Flag.READ),
    "read": inbox.Filter(Flag.READ, _GONE),
    "archived": inbox.Filter(Flag.ARCHIVED, Flag.RECALLED),
}
"""The flags that each `state` selects; without a state all items."""


class InboxApi:
    """The handlers; `announce` publishes the changes of a mark."""

    def __init__(
        self,
        store: SqliteStore,
        limits: DispatchLimits,
        signing: SigningKey,
        waiters: Waiters,
        announce: Callable[[Sequence[InboxItem]], None],
    ) -> None:
        self._store, self._limits, self._signing = store, limits, signing
        self._waiters, self._announce = waiters, announce

    def list_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/inbox", self.get, allow_head=False),
            web.get("/v1/inbox/counts", self.get_counts, allow_head=False),
            web.post("/v1/inbox/marks", self.mark),
        ]

    async def get(self, request: web.Request) -> web.Response:
        owner = read_owner(request, self._signing)
        limit = min(read_number(request, "limit", 50), self._limits.inbox_page_items_max) or 1
        if "before" in request.query and ("after" in request.query or "wait" in request.query):
            raise RequestRefused(DispatchCode.REQUEST_INVALID, "before cannot be combined with after or wait")
        if "before" in request.query:
            _, before = self._read_position(request, "before")
            shown = read_filter(request)
            found = await self._store.reader.run(
                lambda connection: inbox.fetch_before(connection, *owner, before, limit, shown)
            )
            return self._show(found, owner)
        if given := [field for field in ("state", "category") if field in request.query]:
            detail = f"{given[0]} needs before: without it, the answer has the changes of all items"
            raise RequestRefused(DispatchCode.REQUEST_INVALID, detail)
        wait_ms = min(read_number(request, "wait") * 1_000, self._limits.inbox_wait_ms_max)
        position = self._read_position(request, "after") if "after" in request.query else (0, 0)
        event = self._waiters.enter(owner) if wait_ms else None
        try:
            found = await self._fetch_after(owner, position, limit)
            if event is not None and found is not None and not found.items and found.head.epoch == position[0]:
                await self._waiters.wait(event, wait_ms / 1_000)
                found = await self._fetch_after(owner, position, limit)
        finally:
            if event is not None:
                self._waiters.leave(owner, event)
        return self._show(found, owner)

    async def get_counts(self, request: web.Request) -> web.Response:
        owner = read_owner(request, self._signing)
        found = await self._store.reader.run(lambda connection: inbox.read_head(connection, *owner))
        if found is None:
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        return answer(show_head(found[1]))

    async def mark(self, request: web.Request) -> web.Response:
        owner = read_owner(request, self._signing)
        body, _ = read_body(await read_bytes(request), MarkBody)
        if sum(given is not None for given in (body.items, body.ids, body.up_to)) != 1:
            raise RequestRefused(DispatchCode.REQUEST_INVALID, "expected exactly one of items, ids and up_to")
        if body.mark == DELIVERED and body.ids is not None:
            raise RequestRefused(DispatchCode.REQUEST_INVALID, "delivered needs items or up_to", pointer="/ids")
        up_to = None if body.up_to is None else _read_position(body.up_to)
        chosen = Chosen([_read_position(text) for text in body.items or ()], body.ids or (), up_to)
        marked = await self._store.mark(Call(*owner, chosen, body.mark, *MARKS[body.mark], now_ms()))
        if marked is None:
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        if body.mark == DELIVERED:
            return answer(show_head(marked.head))
        self._announce(marked.items)
        return answer({**show_head(marked.head), "items": [show_item(item) for item in marked.items]})

    async def _fetch_after(self, owner: tuple[str, str], position: tuple[int, int], limit: int) -> inbox.Fetched | None:
        epoch, seq = position
        found = await self._store.reader.run(lambda connection: inbox.fetch_after(connection, *owner, seq, limit))
        if found is not None and found.head.epoch != epoch and seq:
            found = await self._store.reader.run(lambda connection: inbox.fetch_after(connection, *owner, 0, limit))
        return found

    def _show(self, found: inbox.Fetched | None, owner: tuple[str, str]) -> web.Response:
        if found is None:
            raise RequestRefused(DispatchCode.RECEIVER_MISSING)
        shown: dict[str, Any] = {
            **show_head(found.head),
            "complete": found.is_complete,
            "subject": inbox_subject(*owner),
        }
        return answer({**shown, "items": [show_item(item) for item in found.items]})

    def _read_position(self, request: web.Request, field: str) -> tuple[int, int]:
        position = parse_position(request.query[field])
        if position is None:
            raise RequestRefused(DispatchCode.REQUEST_INVALID, f"{field} must be a position, such as 7.42")
        return position


def _read_position(text: str) -> Position:
    """A position of a body; raises RequestRefused."""
    position = parse_position(text)
    if position is None:
        raise RequestRefused(DispatchCode.REQUEST_INVALID, "expected positions, such as 7.42")
    return position


def read_filter(request: web.Request) -> inbox.Filter:
    """The filter of `state` and `category`; raises RequestRefused."""
    state = request.query.get("state", "")
    if state not in STATES:
        expected = ", ".join(name for name in STATES if name)
        raise RequestRefused(DispatchCode.REQUEST_INVALID, f"unknown state {state[:40]!r}: expected one of {expected}")
    return STATES[state]._replace(category=request.query.get("category", ""))


def read_owner(request: web.Request, signing: SigningKey) -> tuple[str, str]:
    """Tenant and receiver of a receiver's token; raises RequestRefused."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "bearer":
        raise RequestRefused(DispatchCode.RECEIVER_TOKEN_INVALID)
    return signing.read_receiver(token.strip())
