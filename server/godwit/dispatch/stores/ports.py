"""The interface of a store for fan-out and the inbox.

Each method is one atomic unit. The embedded store implements them with SQLite (`sqlite/`); a test implements them in
memory to inject faults. Times are wall-clock milliseconds of the store's host.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from ..model import DeliveryKey, InboxItem, Job, Outcome, Page, Priority, PutOff, Shipment


class FanoutStore(Protocol):
    """Jobs and deliveries, for the workers of one channel."""

    async def list_due_tenants(self, channel: str, now_ms: int) -> list[str]:
        """The tenants with a job that is due and whose lease has ended."""

    async def claim_job(
        self,
        channel: str,
        tenant: str | None,
        now_ms: int,
        lease_ms: int,
        priority_max: int = Priority.BULK,
        but: Collection[int] = (),
    ) -> Job | None:
        """Claims the most urgent due job of `tenant` (None: of any) whose lease has ended, with a new fence; none of the
        notifications `but`."""

    async def read_page(self, job: Job, limit: int, now_ms: int) -> Page:
        """The receivers after the job's cursor, each with the verdict on its delivery."""

    async def commit_page(self, job: Job, page: Page, due_ms: int, now_ms: int) -> tuple[DeliveryKey, ...] | None:
        """Inserts missing deliveries by their verdicts and moves the cursor; returns those to send. None: another worker owns the job."""

    async def advance(
        self,
        outcomes: Sequence[Outcome],
        starts: Sequence[Shipment],
        in_flight: Sequence[Shipment],
        now_ms: int,
        due_ms: int,
    ) -> list[Shipment]:
        """One tick: stores outcomes, renews the leases of running sends until `due_ms`, and marks `starts` as sending.

        Returns the shipments to send now, each with the number of its attempt.
        """

    async def put_off(self, rows: Sequence[PutOff]) -> None:
        """Releases queued deliveries of this worker; they become due at the given times."""

    async def claim_due(
        self, channel: str, now_ms: int, due_ms: int, limit: int, own: Collection[DeliveryKey]
    ) -> list[Shipment]:
        """Claims deferred deliveries that are due, and queued or sending ones whose lease has ended, except the worker's
        own. The result of one that was sending is unknown: it is flagged before it is sent again.
        """


class Sender(Protocol):
    """Sends the shipments of a channel."""

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        """Sends; returns the result of each. Raises only NotSent: an unclear result is returned as unknown."""


class InboxStore(Protocol):
    """Inboxes, for the inbox worker. Each (receiver, notification) is appended exactly once."""

    async def list_due_tenants(self, channel: str, now_ms: int) -> list[str]:
        """The tenants with a job that is due and whose lease has ended."""

    async def append_pages(
        self, tenant: str | None, now_ms: int, lease_ms: int, limit: int
    ) -> tuple[int, list[InboxItem]]:
        """Claims due jobs of `tenant` (None: of any) and appends their next pages, `limit` receivers in all, each item with
        its delivery, and moves the cursors. Returns the number of jobs, and the items.
        """

    async def append_due(self, now_ms: int, limit: int) -> tuple[int, list[InboxItem]]:
        """Appends deferred items that are due. Returns the number of deliveries examined, and the items."""
