"""The journal stream `feedback`: a row for each delivery of each event, once but after a crash, and none before its delivery is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from godwit.dispatch.feed.feedback import FeedbackWriter
from godwit.dispatch.stores.sqlite.feed.store import FeedStore
from godwit.dispatch.stores.sqlite.store import SqliteStore
from godwit.engine import check_journal
from godwit.rows.feedback import FeedbackRow, JournalFailed
from tests.dispatch.conftest import running
from tests.dispatch.test_events import send

DEADLINE_S = 60
WRITING = {"dispatch": {"feedback_journal": True}, "dispatch_limits": {"sweep_ms": 100}}


def count_rows(folder: Path) -> int:
    files = check_journal(folder / "dispatch" / "journal")
    assert all(file["is_whole"] for file in files)
    return sum(file["rows"] for file in files if file["stream"] == "feedback")


async def test_rows_are_in_the_journal_and_written_once_over_restarts(tmp_path: Path, runtime: Path) -> None:
    async with asyncio.timeout(DEADLINE_S):
        async with running(tmp_path, WRITING) as both:
            await send(both, "n1", "n2")
        assert count_rows(tmp_path) == 2
        async with running(tmp_path, WRITING) as both:
            await send(both, "n3")
        assert count_rows(tmp_path) == 3


async def test_nothing_is_written_unless_it_is_asked_for(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path) as both:
        await send(both, "n1")
    assert not (tmp_path / "dispatch" / "journal").exists()


class KeptRows:
    """A journal that fails when it is asked to, after it wrote."""

    def __init__(self) -> None:
        self.rows: list[FeedbackRow] = []
        self.fails = False

    def write(self, rows: Sequence[FeedbackRow]) -> None:
        self.rows += rows
        if self.fails:
            raise JournalFailed("the disk is full")

    def close(self) -> None: ...


async def test_rows_name_what_they_are_about_and_a_failed_write_is_repeated(tmp_path: Path, runtime: Path) -> None:
    async with running(tmp_path) as both:
        await both.api("PUT", "/v1/groups/news", {})
        await both.api("PUT", "/v1/receivers/ann", {})
        await both.api("PUT", "/v1/groups/news/subscriptions/ann", {})
        body = {"to": {"group": "news"}, "content": {"title": "hi"}, "category": "sport"}
        assert (await both.api("PUT", "/v1/notifications/n1", body))[0] == 202
        await send(both, "n2")
        while (await both.api("GET", "/v1/notifications/n1"))[1]["state"] != "settled":
            pass
    journal = KeptRows()
    store = SqliteStore(tmp_path / "dispatch")
    try:
        writer = FeedbackWriter(FeedStore(store), journal, 0.1)
        journal.fails = True
        with pytest.raises(JournalFailed):
            await writer.run()
        journal.fails, first = False, len(journal.rows)
        await writer.stop()
        assert len(journal.rows) == 2 * first, "what may not be on the disk is written again"
        assert len({row.event for row in journal.rows}) == first, "and a repeat is recognized by its name"
        (row,) = {row.event: row for row in journal.rows if row.notification == "n1"}.values()
        assert (row.tenant, row.receiver, row.address, row.channel, row.state) == (
            "default",
            "ann",
            "",
            "inbox",
            "sent",
        )
        assert (row.group_name, row.category, row.possible_duplicate) == ("news", "sport", False)
        journal.rows.clear()
        await writer.stop()
        assert not journal.rows
    finally:
        store.close()


async def test_a_stop_writes_a_batch_and_leaves_the_rest_to_the_next_start(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as both:
        await send(both, "n1", "n2", "n3")
    monkeypatch.setattr("godwit.dispatch.feed.feedback.BATCH_ROWS", 1)
    monkeypatch.setattr("godwit.dispatch.feed.feedback.STOP_S", 0)
    store, journal = SqliteStore(tmp_path / "dispatch"), KeptRows()
    try:
        counts = []
        for _ in range(3):
            await FeedbackWriter(FeedStore(store), journal, 0.1).stop()
            counts.append(len(journal.rows))
        assert counts == [1, 2, 3]
    finally:
        store.close()
