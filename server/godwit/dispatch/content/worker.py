"""Renders content for each receiver before the channels start: pages of the jobs of templates that use `receiver`.

Stateless: a page is stored with the job's cursor, and a page that a crash interrupts is rendered again. Tenants take
turns, and a page has a time limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from ...config.dispatch_limits import DispatchLimits
from ..model import Person, Personal
from ..stores.sqlite.jobs import claim_job
from ..stores.sqlite.manage import personal
from ..stores.sqlite.manage.pausing import TEMPLATE
from ..stores.sqlite.store import SqliteStore
from ..wakeups import WakeUps
from .personal import Form, render_people
from .renderer import Renderer


class TemplateWorker:
    """One for a store; `run` until it is cancelled."""

    def __init__(
        self,
        store: SqliteStore,
        renderer: Renderer,
        channels: Callable[[], Sequence[str]],
        on_work: Callable[[str], None],
        *,
        limits: DispatchLimits,
        now_ms: Callable[[], int],
    ) -> None:
        """`on_work` is called with a tenant whose channels now have work."""
        self._store, self._renderer, self._channels, self._on_work = store, renderer, channels, on_work
        self._limits, self._now_ms = limits, now_ms
        self._is_again, self._again_after = True, 0
        self.wakeups = WakeUps()

    async def close(self) -> None:
        """End the process that renders."""
        await self._renderer.close()

    def look_again(self) -> None:
        """Look for content to render again, or for a resumed job."""
        self._is_again = True
        self.wakeups.add("")

    async def run(self) -> None:
        """Process jobs; looks at least every `sweep_ms`, in case a wake-up was lost."""
        swept_s = 0.0
        while True:
            if time.monotonic() >= swept_s + self._limits.sweep_ms / 1_000:
                swept_s, self._is_again = time.monotonic(), True
                for due in await self._store.list_due_tenants(TEMPLATE, self._now_ms()):
                    self.wakeups.add(due)
            tenant = self.wakeups.take()
            worked = await self._work_page(tenant) if tenant else False
            again = await self._render_again()
            if worked and tenant is not None:
                self.wakeups.add(tenant)  # at the end of the queue: tenants take turns
            elif not again and tenant is None:
                await self.wakeups.wait(self._limits.sweep_ms / 1_000)

    async def _work_page(self, tenant: str) -> bool:
        """Render and store one page of a job. Returns whether there was one."""
        now_ms, lease_ms = self._now_ms(), self._limits.lease_ms
        job = await self._store.writer.run(
            lambda connection: claim_job(connection, TEMPLATE, tenant, now_ms, lease_ms), bulk=True
        )
        if job is None:
            return False
        limit = self._limits.page_receivers_max
        page = await self._store.reader.run(lambda connection: personal.read_people(connection, job, limit))
        done = await self._render(page.form, page.people)
        is_last = await self._store.writer.run(
            lambda connection: personal.store_people(connection, job, page, done, self._channels(), self._now_ms()),
            bulk=True,
        )
        if is_last:
            self._on_work(job.tenant)
        return True

    async def _render_again(self) -> bool:
        """Render failed content of the next notification again, if requested. Returns whether there was any."""
        if not self._is_again:
            return False
        limit, after = self._limits.page_receivers_max, self._again_after
        found = await self._store.reader.run(lambda connection: personal.read_again(connection, after, limit))
        self._again_after = 0 if found is None else found.nid
        if found is None:
            self._is_again = after > 0  # from the first on once more
            return after > 0
        done = await self._render(found.form, found.people)
        now_ms = self._now_ms()
        await self._store.writer.run(lambda connection: personal.store_again(connection, found.nid, done, now_ms))
        return True

    async def _render(self, form: bytes, people: Sequence[Person]) -> list[Personal]:
        if not people:
            return []
        return await render_people(self._renderer, msgspec.json.decode(form, type=Form), people)
