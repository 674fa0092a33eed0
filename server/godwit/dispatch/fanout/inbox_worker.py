"""The inbox channel's worker: appends pages of a job to inboxes, and announces the new items.

An append happens exactly once by its key, so there is no intent and no unknown result. An announcement is a hint: a
client that misses one finds that a SEQ is missing and fetches it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ..model import InboxItem
from ..stores.ports import InboxStore
from .run import Hints


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

    async def run(self, hints: Hints, sweep_s: float) -> None:
        """Work for woken tenants, in turn; asks the store at each sweep which tenants have work, however many are woken."""
        swept_s = 0.0
        while True:
            if asyncio.get_running_loop().time() >= swept_s + sweep_s:
                swept_s = asyncio.get_running_loop().time()
                for due in await self._store.list_due_tenants("inbox", self._now_ms()):
                    hints.add(due)
            tenant = hints.take()
            if await self.work_page(tenant):
                if tenant is not None:
                    hints.add(tenant)  # at the end of the queue: tenants take turns
            elif tenant is None:
                await hints.wait(sweep_s)

    async def work_page(self, tenant: str | None) -> bool:
        """Store a page of a job, or of several small jobs. Returns whether there were any."""
        count, items = await self._store.append_pages(tenant, self._now_ms(), self._lease_ms, self._page_receivers)
        if items:
            self._announce(items)
        return count > 0

    async def work_due(self) -> bool:
        """Append deferred items that are due. Returns whether there were any."""
        count, items = await self._store.append_due(self._now_ms(), self._page_receivers)
        if items:
            self._announce(items)
        return count > 0
