"""The embedded store: binds the units of this folder to the writer and the readers.

Owns the file's lock: one process at a time. A read sees all writes that returned before it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from ....errors import ConfigInvalid
from ...model import DeliveryKey, InboxItem, Job, Outcome, Page, Priority, PutOff, Shipment
from ...vault import Vault, read_keys
from . import accept, fanout, inbox, jobs, retention, steps
from .accept import Accepted, Draft
from .manage import leaving, versions
from .many import accepts, marks
from .many.gathering import Gathering
from .reader import Reader
from .writer import Writer

KEYS_FILE = "secrets.key"


def take_lock(folder: Path) -> int:
    """Take the lock of a folder's database; closing it releases it. Raises ConfigInvalid if another process has it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        raise ConfigInvalid("node.data_directory", str(folder), "is in use by another dispatch") from error
    return lock


class SqliteStore:
    """Implements FanoutStore and InboxStore. Open from construction to `close`."""

    def __init__(self, folder: Path, *, inbox_items_max: int = 1_000, secrets_key_file: Path | None = None) -> None:
        """Raises ConfigInvalid if another process has the file. The keys of secrets are in `secrets_key_file`, or in the
        database's folder.
        """
        self._lock = take_lock(folder)
        self._inbox_items_max = inbox_items_max
        self._wal = folder / "dispatch.sqlite-wal"
        try:
            vault = Vault(read_keys(secrets_key_file or folder / KEYS_FILE))
            self.writer = Writer(folder / "dispatch.sqlite", vault)
        except BaseException:
            os.close(self._lock)
            raise
        self._accepts = Gathering(self.writer, accepts.accept_many)
        self._marks = Gathering(self.writer, marks.mark_many, is_bulk=True)
        self.reader = Reader(folder / "dispatch.sqlite", vault)

    def close(self) -> None:
        """Commit waiting writes and release the lock."""
        self.reader.close()
        self.writer.close()
        os.close(self._lock)

    def read_wal_bytes(self) -> int:
        """The size of the write-ahead log."""
        try:
            return self._wal.stat().st_size
        except FileNotFoundError:
            return 0

    async def accept(self, draft: Draft, now_ms: int) -> Accepted:
        return await self._accepts.run((draft, now_ms))

    async def accept_all(self, drafts: Sequence[Draft], now_ms: int) -> list[Accepted]:
        return await self.writer.run(lambda connection: accepts.accept_all(connection, drafts, now_ms))

    async def mark(self, call: marks.Call) -> marks.Marked | None:
        """What a receiver does with its items; None: there is no such receiver."""
        return await self._marks.run(call)

    async def route(self, channels: Sequence[str], now_ms: int, limit: int) -> list[str]:
        return await self.writer.run(lambda connection: accept.route(connection, channels, now_ms, limit))

    async def advance_routes(self, channels: Collection[str], now_ms: int, limit: int) -> list[str]:
        return await self.writer.run(
            lambda connection: steps.advance_routes(connection, channels, now_ms, limit), bulk=True
        )

    async def list_due_tenants(self, channel: str, now_ms: int) -> list[str]:
        return await self.reader.run(lambda connection: jobs.list_due_tenants(connection, channel, now_ms))

    async def claim_job(
        self,
        channel: str,
        tenant: str | None,
        now_ms: int,
        lease_ms: int,
        priority_max: int = Priority.BULK,
        but: Collection[int] = (),
    ) -> Job | None:
        return await self.writer.run(
            lambda connection: jobs.claim_job(connection, channel, tenant, now_ms, lease_ms, priority_max, but),
            bulk=True,
        )

    async def read_page(self, job: Job, limit: int, now_ms: int) -> Page:
        return await self.reader.run(lambda connection: jobs.read_page(connection, job, limit, now_ms))

    async def commit_page(self, job: Job, page: Page, due_ms: int, now_ms: int) -> tuple[DeliveryKey, ...] | None:
        return await self.writer.run(
            lambda connection: jobs.commit_page(connection, job, page, due_ms, now_ms), bulk=True
        )

    async def append_pages(
        self, tenant: str | None, now_ms: int, lease_ms: int, limit: int
    ) -> tuple[int, list[InboxItem]]:
        return await self.writer.run(
            lambda connection: inbox.append_pages(connection, tenant, now_ms, lease_ms, limit, self._inbox_items_max),
            bulk=True,
        )

    async def append_due(self, now_ms: int, limit: int) -> tuple[int, list[InboxItem]]:
        return await self.writer.run(
            lambda connection: inbox.append_due(connection, now_ms, limit, self._inbox_items_max), bulk=True
        )

    async def advance(
        self,
        outcomes: Sequence[Outcome],
        starts: Sequence[Shipment],
        in_flight: Sequence[Shipment],
        now_ms: int,
        due_ms: int,
    ) -> list[Shipment]:
        return await self.writer.run(
            lambda connection: fanout.advance(connection, outcomes, starts, in_flight, now_ms, due_ms), bulk=True
        )

    async def put_off(self, rows: Sequence[PutOff]) -> None:
        await self.writer.run(lambda connection: fanout.put_off(connection, rows), bulk=True)

    async def claim_due(
        self, channel: str, now_ms: int, due_ms: int, limit: int, own: Collection[DeliveryKey]
    ) -> list[Shipment]:
        return await self.writer.run(
            lambda connection: fanout.claim_due(connection, channel, now_ms, due_ms, limit, own), bulk=True
        )

    async def finish_leaving(self, tenant: str) -> None:
        """End the jobs of a tenant that is being deleted, and delete what is left of it, also from the log of the file."""
        after: str | None = ""
        while after is not None:
            after = await self.writer.run(partial(leaving.cancel_some, tenant=tenant, after=after), bulk=True)
        while await self.writer.run(lambda connection: leaving.delete_some(connection, tenant), bulk=True):
            pass
        await self.writer.empty_log()

    async def finish_all_leaving(self) -> None:
        """The same for every tenant whose deletion was interrupted."""
        for tenant in await self.reader.run(leaving.list_leaving):
            await self.finish_leaving(tenant)

    async def forget_versions(self, limit: int) -> None:
        """Delete the old versions of groups that nothing reads, page by page."""
        after = -1
        while after:
            old, after = await self.reader.run(partial(versions.list_old, after=max(after, 0), limit=limit))
            for gid, version in old:
                page = partial(versions.forget_version, gid=gid, version=version, limit=limit)
                while await self.writer.run(page, bulk=True):
                    pass

    async def forget_old(self, before_ms: int, limit: int, removed: list[InboxItem]) -> int:
        return await self.writer.run(
            lambda connection: retention.forget_old(connection, before_ms, limit, removed), bulk=True
        )
