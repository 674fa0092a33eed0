"""What fan-out and the inbox need of a store. Each method is one atomic unit: it happens whole, or not at all.

The embedded store implements them over SQLite (`sqlite/`), a test implements them in memory to plant faults. Times are wall-clock
milliseconds of the store's host.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from ..model import DeliveryKey, InboxItem, Job, Outcome, Page, Priority, PutOff, Shipment


class FanoutStore(Protocol):
    """Jobs and deliveries, as the workers of one channel see them."""

    async def list_due_tenants(self, channel: str, now_ms: int) -> list[str]:
        """The tenants with a job that is due and whose lease has ended."""

    async def claim_job(
        self, channel: str, tenant: str | None, now_ms: int, lease_ms: int, priority_max: int = Priority.BULK
    ) -> Job | None:
        """Takes the most urgent due job of `tenant` (None: of any) whose lease has ended, under a new fence."""

    async def read_page(self, job: Job, limit: int, now_ms: int) -> Page:
        """The receivers after the job's cursor, each with the verdict on its delivery."""

    async def commit_page(self, job: Job, page: Page, due_ms: int, now_ms: int) -> tuple[DeliveryKey, ...] | None:
        """Inserts missing deliveries by their verdicts and moves the cursor; those to send. None: another worker owns the job."""

    async def advance(
        self,
        outcomes: Sequence[Outcome],
        starts: Sequence[Shipment],
        in_flight: Sequence[Shipment],
        now_ms: int,
        due_ms: int,
    ) -> list[Shipment]:
        """One tick: settles outcomes, renews what is in flight until `due_ms`, and marks `starts` as sending.

        Returns what may be sent now: each shipment with the number of the attempt that began.
        """

    async def put_off(self, rows: Sequence[PutOff]) -> None:
        """Releases queued deliveries from this worker: they are due again at their times."""

    async def claim_due(
        self, channel: str, now_ms: int, due_ms: int, limit: int, own: Collection[DeliveryKey]
    ) -> list[Shipment]:
        """Takes deferred deliveries that are due, and queued or sending ones whose lease has ended, except the worker's own.

        One that was sending is in doubt: it is flagged before it is sent again.
        """


class Sender(Protocol):
    """A channel's way out."""

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        """Sends, and says what became of each. Raises nothing: what is not known is in doubt."""


class InboxStore(Protocol):
    """Inboxes, as the inbox worker sees them. Appending is exact by (receiver, notification)."""

    async def append_pages(
        self, tenant: str | None, now_ms: int, lease_ms: int, limit: int
    ) -> tuple[int, list[InboxItem]]:
        """Takes due jobs of `tenant` (None: of any) and appends their next pages, `limit` receivers together, each item with its
        delivery, and moves the cursors: how many jobs, and the items."""

    async def append_due(self, now_ms: int, limit: int) -> tuple[int, list[InboxItem]]:
        """Appends deferred items that are due: how many deliveries were looked at, and the items."""
