"""Content of each receiver in the embedded store: what must be rendered, what was rendered, and what failed.

A notification whose template uses `receiver` has a rendering job first. The jobs of the channels are made when its last
page is stored. Invariant: no delivery is made for a receiver without content.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ....model import DeliveryKey, Job, Page, Person, Personal
from ..accept import make_jobs
from ..changes import Changes
from ..deciding import RENDERING
from ..jobs import move_cursor, read_numbers
from ..many.rows import pack_list, run_on_rows
from ..tenants import find_exceeded, give_bytes_back, take_bytes
from .pausing import TEMPLATE, is_paused, note_render


class PeoplePage(NamedTuple):
    """Receivers to render for. `form` has the parts to render; `cursor` and `is_last` apply once all of them are rendered."""

    form: bytes
    people: tuple[Person, ...]
    cursor: int
    is_last: bool


class Again(NamedTuple):
    """Receivers of one notification whose content is rendered again."""

    nid: int
    form: bytes
    people: tuple[Person, ...]


def read_people(connection: sqlite3.Connection, job: Job, limit: int) -> PeoplePage:
    """The existing receivers after the cursor."""
    form = _read_form(connection, job.nid)
    if form is None:  # deleted meanwhile
        return PeoplePage(b"", (), job.cursor, True)
    page, is_last, left_out = read_numbers(connection, job, limit)
    if not page:
        return PeoplePage(form, (), job.cursor, True)
    wanted = [rid for rid in page if rid not in left_out]
    return PeoplePage(form, find_people(connection, wanted), page[-1], is_last)


def store_people(
    connection: sqlite3.Connection,
    job: Job,
    page: PeoplePage,
    done: Sequence[Personal],
    channels: Sequence[str],
    now_ms: int,
) -> bool:
    """Store rendered content and the checkpoint; returns whether the channels have work now. If most of the first receivers
    fail, the job pauses, and its page is rendered again after it is resumed.
    """
    if not _holds(connection, job):
        return False
    if quota := find_exceeded(connection, job.tenant, sum(map(_count_bytes, done)), now_ms):
        done = [Personal(one.rid, failure=quota) for one in done]
    changes = Changes(connection, now_ms, {job.nid: job.tenant})
    for one in done:
        note_render(connection, DeliveryKey(job.nid, one.rid, TEMPLATE, 0), not one.failure, changes)
    if is_paused(connection, job.nid, TEMPLATE):
        return False
    is_whole = len(done) == len(page.people)
    cursor, is_last = (page.cursor, page.is_last) if is_whole else (done[-1].rid, False)
    if not move_cursor(connection, job, Page((), cursor, is_last)):
        return False
    _insert(connection, job.nid, done)
    if is_last:
        make_jobs(connection, [job.nid], channels)
    return is_last


def ask_again(connection: sqlite3.Connection, key: DeliveryKey) -> None:
    """A delivery is repeated: render its receiver's content again, if it failed."""
    connection.execute("UPDATE personal SET is_again = 1 WHERE nid = ? AND rid = ? AND failure <> ''", key[:2])


def read_again(connection: sqlite3.Connection, after: int, limit: int) -> Again | None:
    """Receivers of the next notification after number `after` whose content must be rendered again; None: there is none."""
    row = connection.execute(
        "SELECT nid FROM personal WHERE is_again = 1 AND nid > ? ORDER BY nid LIMIT 1", (after,)
    ).fetchone()
    if row is None:
        return None
    rows = connection.execute(
        "SELECT rid FROM personal WHERE is_again = 1 AND nid = ? ORDER BY rid LIMIT ?", (row[0], limit)
    )
    return Again(row[0], _read_form(connection, row[0]) or b"", find_people(connection, [rid for (rid,) in rows]))


def store_again(connection: sqlite3.Connection, nid: int, done: Sequence[Personal], now_ms: int) -> None:
    """Store the second rendering; deliveries that waited for it become due."""
    _insert(connection, nid, done)
    connection.executemany(
        "UPDATE delivery SET due_ms = ? WHERE nid = ? AND rid = ? AND state = 2 AND reason = ?",
        [(now_ms, nid, one.rid, RENDERING) for one in done],
    )


def forget_personal(connection: sqlite3.Connection, nid: int, limit: int) -> int:
    """Delete the content of some receivers of a notification; returns their number."""
    found = connection.execute(
        "SELECT rid, length(content) + length(email) FROM personal WHERE nid = ? ORDER BY rid LIMIT ?", (nid, limit)
    ).fetchall()
    if not found:
        return 0
    connection.execute("DELETE FROM personal WHERE nid = ? AND rid <= ?", (nid, found[-1][0]))
    (tenant,) = connection.execute("SELECT tenant FROM notification WHERE nid = ?", (nid,)).fetchone()
    give_bytes_back(connection, tenant, sum(size for _, size in found))
    return len(found)


def _insert(connection: sqlite3.Connection, nid: int, done: Iterable[Personal]) -> None:
    """Insert content, except for receivers that were erased meanwhile."""
    rows = list(done)
    rids = pack_list(one.rid for one in rows)
    before = _sum_bytes(connection, nid, rids)
    run_on_rows(
        connection,
        "INSERT OR REPLACE INTO personal SELECT column1, rid, column3, column4, column5, 0 FROM (",
        [(nid, *one) for one in rows],
        ") JOIN receiver ON receiver.rid = column2",
    )
    (tenant,) = connection.execute("SELECT tenant FROM notification WHERE nid = ?", (nid,)).fetchone()
    take_bytes(connection, tenant, _sum_bytes(connection, nid, rids) - before)


def _sum_bytes(connection: sqlite3.Connection, nid: int, rids: str) -> int:
    found = connection.execute(
        "SELECT coalesce(sum(length(content) + length(email)), 0) FROM personal "
        "WHERE nid = ? AND rid IN (SELECT value FROM json_each(?))",
        (nid, rids),
    ).fetchone()[0]
    return int(found)


def _count_bytes(one: Personal) -> int:
    return len(one.content) + len(one.email)


def _holds(connection: sqlite3.Connection, job: Job) -> bool:
    """Whether this worker still owns the job."""
    query = "SELECT 1 FROM job WHERE nid = ? AND channel = ? AND fence = ? AND is_done = 0"
    return connection.execute(query, (job.nid, job.channel, job.fence)).fetchone() is not None


def _read_form(connection: sqlite3.Connection, nid: int) -> bytes | None:
    row = connection.execute(
        "SELECT body FROM rendered WHERE nid = ? AND channel = ? AND locale = ''", (nid, TEMPLATE)
    ).fetchone()
    return None if row is None else bytes(row[0])


def find_people(connection: sqlite3.Connection, rids: Sequence[int]) -> tuple[Person, ...]:
    """Receivers by their numbers, as templates know them."""
    rows = connection.execute(
        "SELECT rid, name, attributes FROM receiver WHERE rid IN (SELECT value FROM json_each(?)) ORDER BY rid",
        (pack_list(rids),),
    )
    return tuple(Person(*row) for row in rows)
