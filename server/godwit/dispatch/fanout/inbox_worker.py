"""The inbox channel's worker: pages of a job become items of inboxes, and what was appended is announced.

An append is exact by its key, so there is no intent and nothing is in doubt. Announcing is a hint: a client that misses one sees
that a SEQ is missing and fetches it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..model import InboxItem, Job, Page
from ..stores.ports import InboxStore


class InboxJobs(InboxStore, Protocol):
    """The store, as far as this worker needs it."""

    async def claim_job(self, channel: str, tenant: str | None, now_ms: int, lease_ms: int) -> Job | None: ...

    async def read_page(self, job: Job, limit: int, now_ms: int) -> Page: ...


class InboxWorker:
    """Works page by page; `announce` is called after the commit."""

    def __init__(
        self,
        store: InboxJobs,
        announce: Callable[[Sequence[InboxItem]], None],
        *,
        page_receivers: int,
        lease_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._store, self._announce = store, announce
        self._page_receivers, self._lease_ms, self._now_ms = page_receivers, lease_ms, now_ms

    async def work_page(self, tenant: str | None) -> bool:
        """Claims a job and commits one page of it; whether there was one."""
        job = await self._store.claim_job("inbox", tenant, self._now_ms(), self._lease_ms)
        if job is None:
            return False
        now_ms = self._now_ms()
        page = await self._store.read_page(job, self._page_receivers, now_ms)
        items = await self._store.append_page(job, page, now_ms)
        if items:
            self._announce(items)
        return True

    async def work_due(self) -> bool:
        """Appends deferred items that are due; whether there were any."""
        count, items = await self._store.append_due(self._now_ms(), self._page_receivers)
        if items:
            self._announce(items)
        return count > 0
