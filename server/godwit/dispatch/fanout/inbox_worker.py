"""The inbox channel's worker: pages of a job become items of inboxes, and what was appended is announced.

An append is exact by its key, so there is no intent and nothing is in doubt. Announcing is a hint: a client that misses one sees
that a SEQ is missing and fetches it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..model import InboxItem
from ..stores.ports import InboxStore


class InboxWorker:
    """Works page by page; `announce` is called after the commit."""

    def __init__(
        self,
        store: InboxStore,
        announce: Callable[[Sequence[InboxItem]], None],
        *,
        page_receivers: int,
        lease_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._store, self._announce = store, announce
        self._page_receivers, self._lease_ms, self._now_ms = page_receivers, lease_ms, now_ms

    async def work_page(self, tenant: str | None) -> bool:
        """Commits a page of a job, or of several jobs where they are small; whether there were any."""
        count, items = await self._store.append_pages(tenant, self._now_ms(), self._lease_ms, self._page_receivers)
        if items:
            self._announce(items)
        return count > 0

    async def work_due(self) -> bool:
        """Appends deferred items that are due; whether there were any."""
        count, items = await self._store.append_due(self._now_ms(), self._page_receivers)
        if items:
            self._announce(items)
        return count > 0
