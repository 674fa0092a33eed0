"""The order in which the writer commits units: an API call waits for one bulk unit at most, and neither kind starves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from godwit.dispatch.stores.sqlite.store import SqliteStore
from godwit.dispatch.stores.sqlite.writer import GROUP_MAX


async def run_waiting(folder: Path, units: Sequence[tuple[str, bool]]) -> list[tuple[str, int]]:
    """Units that wait while the writer is busy, by name and whether they are bulk; each with the commits before it."""
    store = SqliteStore(folder)
    ran: list[tuple[str, int]] = []
    is_busy, is_open = threading.Event(), threading.Event()

    def block(connection: object) -> None:
        is_busy.set()
        is_open.wait()

    def make(name: str) -> Callable[[object], None]:
        return lambda connection: ran.append((name, store.writer.commits - before))

    try:
        before = store.writer.commits
        waiting = [asyncio.create_task(store.writer.run(block))]
        await asyncio.to_thread(is_busy.wait)
        waiting += [asyncio.create_task(store.writer.run(make(name), bulk=is_bulk)) for name, is_bulk in units]
        await asyncio.sleep(0)  # all of them wait for the writer
        is_open.set()
        await asyncio.gather(*waiting)
    finally:
        is_open.set()
        store.close()
    return ran


async def test_an_urgent_unit_is_committed_before_a_bulk_unit_begins(tmp_path: Path) -> None:
    ran = await run_waiting(tmp_path, [("page 1", True), ("page 2", True), ("call 1", False), ("call 2", False)])
    names, commits = [name for name, _ in ran], [count for _, count in ran]
    assert names == ["call 1", "call 2", "page 1", "page 2"]
    assert commits[0] == commits[1] and commits[1:] == list(range(commits[1], commits[1] + 3))


async def test_a_bulk_unit_has_its_turn_among_many_urgent_ones(tmp_path: Path) -> None:
    calls = [(f"call {number}", False) for number in range(3 * GROUP_MAX)]
    ran = await run_waiting(tmp_path, [("page 1", True), ("page 2", True), *calls])
    names = [name for name, _ in ran]
    assert len(names) == len(set(names)) == 2 + 3 * GROUP_MAX
    assert [names.index("page 1"), names.index("page 2")] == [GROUP_MAX, 2 * GROUP_MAX + 1]
