"""A receiver's inbox: its items, counts and marks, kept current.

Owns the connection of one inbox. Items and changes arrive from the node, or without a client by long polls of dispatch.
Missing items are fetched from dispatch, which is authoritative. Invariant: while anything is missing, a fetch runs or
waits for its next try.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Literal, TypeAlias

import msgspec

from ...errors import GodwitError
from ...model import Message, Position
from ..backoff import reconnect_wait_ms
from ..client import Client
from ..errors import ClientClosed, ClientError
from ..items import Status
from .requests import DispatchRequests, TokenSource
from .state import Filter, InboxHead, InboxItem, InboxPage, InboxState, Verdict

log = logging.getLogger("godwit.client.inbox")

Mark: TypeAlias = Literal["seen", "read", "unread", "archived", "unarchived", "confirmed"]
Preferences: TypeAlias = dict[str, dict[str, bool]]
FILTERS = ("active", "unread", "archived")
PAGE_ITEMS = 50
FETCH_ITEMS = 200
MARKS_PATH, PREFERENCES_PATH = "/v1/inbox/marks", "/v1/inbox/preferences"
IDS_MAX = 1_000  # that one request marks
POLL_S = 30
AT_ONCE_S = 1.0  # a long poll that brings nothing new lasts longer, unless what answers does not wait
FIRST_WAIT_MS = 500
WAIT_MS_MAX = 30_000


class _Marked(msgspec.Struct, frozen=True):
    items: tuple[InboxItem, ...]


class _Categories(msgspec.Struct, frozen=True):
    categories: Preferences


class Inbox:
    """One inbox, within `async with`, which loads the newest items.

    `client`: a client whose token allows subscribing to the inbox; without it the inbox uses long polls of dispatch.
    `subject`: the inbox's subject on the node; by default dispatch names it. `confirm_ms`: a received position is
    confirmed to dispatch within this time; 0: never.
    """

    def __init__(
        self,
        url: str,
        token: TokenSource,
        *,
        client: Client | None = None,
        subject: str = "",
        filter: Filter = "active",
        items_max: int = 1_000,
        confirm_ms: int = 10_000,
    ) -> None:
        self._requests = DispatchRequests(url, token)
        self._client, self._subject, self._confirm_ms = client, subject, confirm_ms
        self._state = InboxState(items_max)
        self._filter = _check_filter(filter)
        self._behind, self._caught_up, self._confirmable = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._confirmed: Position | None = None
        self._changes = 0
        self._news: set[asyncio.Event] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._error: Exception | None = None
        self._is_closed = False

    async def __aenter__(self) -> Inbox:
        await self._requests.open()
        self._behind.set()
        self._start(self._catch_up())
        if self._confirm_ms:
            self._start(self._confirm())
        try:
            await self._wait_until(lambda: self._state.known is not None)
        except BaseException:
            await self.close()
            raise
        if self._client is None:
            self._start(self._poll())
        else:
            self._start(self._hear(self._client, self._subject, InboxItem, self._state.take_live))
            self._start(self._hear(self._client, f"{self._subject}/head", InboxHead, self._state.take_head))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def items(self) -> list[InboxItem]:
        """The loaded items of the shown list, the newest first."""
        return self._state.list_items(self._filter)

    @property
    def unread(self) -> int:
        return self._state.unread

    @property
    def unseen(self) -> int:
        return self._state.unseen

    @property
    def has_older(self) -> bool:
        """Whether the shown list may have older items than those loaded."""
        return self._state.before(self._filter) is not None

    async def changed(self) -> None:
        """Wait for the next change of items or counts. Raises the error that ended the inbox."""
        await self._wait_for_change(self._changes)

    async def follow(self) -> AsyncIterator[InboxItem]:
        """Yields the loaded items, then each new or changed item in its latest state."""
        epoch, sequence = -1, 0
        while True:
            changes, known = self._changes, self._state.known
            if known is not None and known.epoch != epoch:
                epoch, sequence = known.epoch, 0
            fresh = self._state.changed_after(sequence)
            if known is not None:
                sequence = known.sequence
            for item in fresh:
                yield item
            await self._wait_for_change(changes)

    async def show(self, filter: Filter) -> None:
        """Show another list, and load its newest items if few are loaded."""
        self._filter = _check_filter(filter)
        if len(self.items) < PAGE_ITEMS:
            await self.load_older()

    async def load_older(self) -> None:
        """Loads a page of older items of the shown list."""
        shown = self._filter
        before = self._state.before(shown)
        if before is not None:
            await self._load_page(shown, before)

    async def mark(self, mark: Mark, items: Sequence[InboxItem] | None = None) -> None:
        """Mark items; without ids all loaded ones."""
        if items is None:
            await self._wait_until(
                lambda: self._state.known is not None
            )  # after a restart nothing is known for a moment
            return await self._mark({"mark": mark, "up_to": str(self._state.known)})
        for first in range(0, len(items), IDS_MAX):
            await self._mark({"mark": mark, "ids": [item.id for item in items[first : first + IDS_MAX]]})

    async def mark_all_read(self) -> None:
        """Mark all known items as read."""
        await self.mark("read")

    async def archive(self, items: Sequence[InboxItem]) -> None:
        await self.mark("archived", items)

    async def read_preferences(self) -> Preferences:
        """The receiver's opt-outs by category and channel. `*` is every category."""
        return (await self._requests.ask("GET", PREFERENCES_PATH, _Categories)).categories

    async def write_preferences(self, categories: Preferences) -> None:
        """Replace the receiver's opt-outs."""
        await self._requests.ask("PUT", PREFERENCES_PATH, object, {"categories": categories})

    async def close(self) -> None:
        """Close the inbox; the client stays open."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tell()
        await self._requests.close()

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None and self._error is None:
            self._error = error if isinstance(error, Exception) else RuntimeError(str(error))
            self._tell()

    async def _wait_for_change(self, changes: int) -> None:
        await self._wait_until(lambda: self._changes != changes)

    async def _wait_until(self, fits: Callable[[], bool]) -> None:
        """Raises what ended the inbox, or ClientClosed."""
        news = asyncio.Event()
        self._news.add(news)
        try:
            while not fits():
                if self._error is not None:
                    raise self._error.with_traceback(None)
                if self._is_closed:
                    raise ClientClosed("the inbox")
                news.clear()
                await news.wait()
        finally:
            self._news.discard(news)

    async def _hear(self, client: Client, subject: str, kind: type[Any], take: Callable[[Any], Verdict]) -> None:
        subscription = client.subscribe(subject)
        try:
            async for item in subscription.items():
                if isinstance(item, Message):
                    self._take(item, kind, take)
                elif not isinstance(item, Status):
                    self._behind.set()  # a gap, or dropped messages
            raise ClientClosed  # else the subscription would not end, and nothing would come any more
        finally:
            await subscription.close()

    def _take(self, message: Message, kind: type[Any], take: Callable[[Any], Verdict]) -> None:
        try:
            verdict = take(msgspec.convert(message.json(), kind))
        except (msgspec.ValidationError, GodwitError, ValueError) as error:
            log.warning("received an invalid item: %s", error)
            verdict = Verdict.BEHIND  # the store says what is
        if verdict in (Verdict.BEHIND, Verdict.RESTART):
            self._behind.set()
        if verdict in (Verdict.NEW, Verdict.RESTART):
            self._tell()

    async def _catch_up(self) -> None:
        """Fetch changes until nothing is missing."""
        failures = 0
        while True:
            await self._behind.wait()
            self._behind.clear()
            before = self._state.known
            await self._retry(self._fetch_missing)
            if not self._behind.is_set():
                self._caught_up.set()
            if not self._behind.is_set() or self._has_moved(before):
                failures = 0
                continue
            await _pause(failures)  # the answer said that more is missing, and brought nothing
            failures += 1

    async def _retry(self, work: Callable[[], Awaitable[object]]) -> None:
        """Repeat a request until it succeeds; raises the error if dispatch refuses for good."""
        failures = 0
        while True:
            try:
                await work()
                return
            except GodwitError as error:
                if not self._requests.may_retry(error):
                    raise
                log.warning("%s; trying again", error)
                await _pause(failures)
                failures += 1

    async def _fetch_missing(self) -> None:
        if self._state.known is None:
            return await self._load_page(self._filter, self._state.before(self._filter) or "")
        page = await self._fetch(f"after={self._state.known}&limit={FETCH_ITEMS}")
        self._take_fetched(self._state.take_changes(page))

    async def _load_page(self, shown: Filter, before: str) -> None:
        page = await self._fetch(f"before={before}&limit={PAGE_ITEMS}&state={shown}")
        self._subject = self._subject or page.subject
        self._take_fetched(self._state.take_older(page, shown, before))

    async def _fetch(self, query: str, wait_s: float = 0) -> InboxPage:
        return await self._requests.ask("GET", f"/v1/inbox?{query}", InboxPage, wait_s=wait_s)

    def _take_fetched(self, verdict: Verdict) -> None:
        if verdict in (Verdict.BEHIND, Verdict.RESTART):
            self._behind.set()
        self._tell()

    def _has_moved(self, before: Position | None) -> bool:
        """Whether the known position has changed since the last call."""
        known = self._state.known
        return known is not None and (before is None or (known != before and before.is_at_or_before(known)))

    async def _mark(self, body: dict[str, Any]) -> None:
        marked = await self._requests.ask("POST", MARKS_PATH, _Marked, body)
        verdicts = {self._state.take_live(item) for item in marked.items}
        self._tell()
        if verdicts & {Verdict.BEHIND, Verdict.RESTART}:
            self._caught_up.clear()
            self._behind.set()
            await self._wait_until(self._caught_up.is_set)

    async def _poll(self) -> None:
        """Follow by long polls, one after the other. After a poll that returns at once without items, wait before the next."""
        failures = 0
        while True:
            before, asked_at = self._state.known, time.monotonic()
            await self._retry(self._poll_once)
            if self._has_moved(before) or time.monotonic() - asked_at >= AT_ONCE_S:
                failures = 0
                continue
            await _pause(failures)
            failures += 1

    async def _poll_once(self) -> None:
        if self._state.known is None:
            return await self._fetch_missing()
        page = await self._fetch(f"after={self._state.known}&limit={FETCH_ITEMS}&wait={POLL_S}", POLL_S)
        counts = (page.head, page.unread, page.unseen)
        if page.items or not page.complete or counts != (str(self._state.known), self.unread, self.unseen):
            self._take_fetched(self._state.take_changes(page))

    async def _confirm(self) -> None:
        """Confirm received positions to dispatch: after a random part of `confirm_ms`, and at most once within it."""
        wait_s, confirmed_at = self._confirm_ms / 1_000, -math.inf
        while True:
            await self._confirmable.wait()
            least = max(0.0, confirmed_at + wait_s - time.monotonic())
            await asyncio.sleep(least + (wait_s - least) * random.random())
            self._confirmable.clear()
            if self._state.known is None or self._state.known == self._confirmed:
                continue
            try:
                await self._retry(self._confirm_known)
            except ClientClosed:
                raise
            except ClientError as error:
                log.warning("%s; the next change is confirmed", error)
            confirmed_at = time.monotonic()

    async def _confirm_known(self) -> None:
        """Confirm the current position, so that a retry after a failure includes items that arrived meanwhile."""
        if (known := self._state.known) is not None:
            self._confirmed = known
            await self._requests.ask("POST", MARKS_PATH, object, {"mark": "delivered", "up_to": str(known)})

    def _tell(self) -> None:
        self._changes += 1
        self._confirmable.set()
        for news in self._news:
            news.set()


async def _pause(failures: int) -> None:
    await asyncio.sleep(reconnect_wait_ms(failures, random.random(), FIRST_WAIT_MS, WAIT_MS_MAX) / 1_000)


def _check_filter(shown: Filter) -> Filter:
    if shown not in FILTERS:
        raise ClientError(f"unknown filter {shown!r}: expected one of {', '.join(FILTERS)}")
    return shown
