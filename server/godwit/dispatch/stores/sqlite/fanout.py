"""Jobs and deliveries in the embedded store: what the workers of a channel do, each a unit of the writer.

Counts change in the transaction that changes the rows they count. Invariant: a page commits only under the job's fence, and a
delivery starts an attempt only from the state `queued` with the attempt number that its worker knows.
"""

from __future__ import annotations

import bisect
import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from ...model import DeliveryKey, Job, Outcome, Page, Shipment, State, Target
from ...pure.rank import may_settle
from .accept import unpack_numbers

_KEY = "nid = ? AND rid = ? AND channel = ? AND aid = ?"


def list_due_tenants(connection: sqlite3.Connection, channel: str, now_ms: int) -> list[str]:
    """The tenants with a job that nobody works on."""
    rows = connection.execute(
        "SELECT DISTINCT tenant FROM job WHERE channel = ? AND is_done = 0 AND lease_end_ms <= ?", (channel, now_ms)
    )
    return [tenant for (tenant,) in rows]


def claim_job(
    connection: sqlite3.Connection, channel: str, tenant: str | None, now_ms: int, lease_ms: int
) -> Job | None:
    """The oldest due job, of one tenant or of any."""
    row = connection.execute(
        "SELECT nid FROM job WHERE channel = ? AND is_done = 0 AND lease_end_ms <= ? AND (? IS NULL OR tenant = ?) "
        "ORDER BY nid LIMIT 1",
        (channel, now_ms, tenant, tenant),
    ).fetchone()
    if row is None:
        return None
    lease_end_ms = now_ms + lease_ms
    found = connection.execute(
        "UPDATE job SET fence = fence + 1, lease_end_ms = ? WHERE nid = ? AND channel = ? RETURNING tenant, cursor, fence",
        (lease_end_ms, row[0], channel),
    ).fetchone()
    expires_ms = connection.execute("SELECT expires_ms FROM notification WHERE nid = ?", row).fetchone()[0]
    return Job(row[0], channel, found[0], found[1], found[2], lease_end_ms, expires_ms)


def read_page(connection: sqlite3.Connection, job: Job, limit: int) -> Page:
    """Receivers after the cursor that still exist, with their active addresses of the channel."""
    page, is_last = _read_numbers(connection, job, limit)
    if not page:
        return Page((), job.cursor, True)
    left_out = _read_left_out(connection, job)
    wanted = [rid for rid in page if rid not in left_out]
    marks = ",".join("?" * len(wanted))
    if job.channel == "inbox":
        rows = connection.execute(f"SELECT rid, name FROM receiver WHERE rid IN ({marks}) ORDER BY rid", wanted)
        targets = tuple(Target(rid, 0, name) for rid, name in rows)
    else:
        rows = connection.execute(
            f"SELECT rid, aid, receiver.name, value, secret FROM address JOIN receiver USING (rid) WHERE rid IN ({marks}) "
            "AND channel = ? AND state = 'active' ORDER BY rid, aid",
            (*wanted, job.channel),
        )
        targets = tuple(Target(*found) for found in rows)
    return Page(targets, page[-1], is_last)


def _read_numbers(connection: sqlite3.Connection, job: Job, limit: int) -> tuple[Sequence[int], bool]:
    """Numbers of receivers after the cursor, and whether they are the last: those listed, or a group's as it was at the accept."""
    targets, gid, version, accepted = connection.execute(
        "SELECT targets, gid, version, accepted FROM notification WHERE nid = ?", (job.nid,)
    ).fetchone()
    numbers = unpack_numbers(targets)
    if not gid:
        begin = bisect.bisect_right(numbers, job.cursor)
        return numbers[begin : begin + limit], begin + limit >= len(numbers)
    rows = connection.execute(
        "SELECT rid FROM subscription WHERE gid = ? AND version = ? AND rid > ? AND since <= ? ORDER BY rid LIMIT ?",
        (gid, version, job.cursor, accepted, limit),
    ).fetchall()
    return [rid for (rid,) in rows], len(rows) < limit


def _read_left_out(connection: sqlite3.Connection, job: Job) -> Collection[int]:
    """Receivers that a notification to a group leaves out."""
    row = connection.execute("SELECT targets FROM notification WHERE nid = ? AND gid <> 0", (job.nid,)).fetchone()
    return () if row is None else frozenset(unpack_numbers(row[0]))


def move_cursor(connection: sqlite3.Connection, job: Job, page: Page) -> bool:
    """The checkpoint: false where another worker owns the job. The lease ends, so that the next page may go to anybody."""
    moved = connection.execute(
        "UPDATE job SET cursor = ?, is_done = ?, lease_end_ms = 0 WHERE nid = ? AND channel = ? AND fence = ?",
        (page.cursor, int(page.is_last), job.nid, job.channel, job.fence),
    )
    return moved.rowcount == 1


def insert_deliveries(
    connection: sqlite3.Connection, job: Job, page: Page, state: State, due_ms: int
) -> tuple[DeliveryKey, ...]:
    """The rows that were missing, and their counts."""
    inserted = []
    for target in page.targets:
        key = DeliveryKey(job.nid, target.rid, job.channel, target.aid)
        done = connection.execute(
            "INSERT OR IGNORE INTO delivery VALUES (?, ?, ?, ?, ?, 0, ?, 0, '', '')", (*key, int(state), due_ms)
        )
        if done.rowcount:
            inserted.append(key)
    if inserted:
        add_counts(connection, {(job.nid, job.channel, state): len(inserted)})
    return tuple(inserted)


def commit_page(
    connection: sqlite3.Connection, job: Job, page: Page, state: State, due_ms: int
) -> tuple[DeliveryKey, ...] | None:
    """The intent and the checkpoint in one; None where the fence is another's."""
    if not move_cursor(connection, job, page):
        return None
    return insert_deliveries(connection, job, page, state, due_ms)


def advance(
    connection: sqlite3.Connection,
    outcomes: Sequence[Outcome],
    starts: Sequence[Shipment],
    in_flight: Sequence[Shipment],
    due_ms: int,
) -> list[Shipment]:
    """One tick of a worker: outcomes, leases, and the sends that begin."""
    counts: Counter[tuple[int, str, State]] = Counter()
    for outcome in outcomes:
        _settle(connection, outcome, counts)
    connection.executemany(
        f"UPDATE delivery SET due_ms = ? WHERE {_KEY} AND state = 3 AND attempt = ?",
        [(due_ms, *shipment.key, shipment.attempt) for shipment in in_flight],
    )
    begun = [started for shipment in starts if (started := _begin(connection, shipment, due_ms, counts))]
    add_counts(connection, counts)
    return begun


def claim_due(
    connection: sqlite3.Connection, channel: str, now_ms: int, due_ms: int, limit: int, own: Collection[DeliveryKey]
) -> list[Shipment]:
    """Deliveries that nobody works on: deferred and due, or left behind by a worker whose lease ended."""
    rows = connection.execute(
        "SELECT nid, rid, channel, aid, state, attempt, doubt FROM delivery "
        "WHERE channel = ? AND state IN (1, 2, 3) AND due_ms <= ? ORDER BY due_ms LIMIT ?",
        (channel, now_ms, limit + len(own)),
    ).fetchall()
    counts: Counter[tuple[int, str, State]] = Counter()
    claimed: list[Shipment] = []
    for nid, rid, _, aid, state, attempt, doubt in rows:
        key = DeliveryKey(nid, rid, channel, aid)
        if key in own or len(claimed) >= limit:
            continue
        if _is_cancelled(connection, nid):
            connection.execute(f"UPDATE delivery SET state = 9 WHERE {_KEY}", key)
            _count_move(counts, key, State(state), State.CANCELLED)
            continue
        is_doubtful = bool(doubt) or state == State.SENDING
        connection.execute(
            f"UPDATE delivery SET state = 1, due_ms = ?, doubt = ? WHERE {_KEY}", (due_ms, int(is_doubtful), *key)
        )
        _count_move(counts, key, State(state), State.QUEUED)
        shipment = _make_shipment(connection, key, attempt, is_doubtful)
        if shipment is None:
            _settle_gone(connection, key, counts)
        else:
            claimed.append(shipment)
    add_counts(connection, counts)
    return claimed


def add_counts(
    connection: sqlite3.Connection, counts: Counter[tuple[int, str, State]] | dict[tuple[int, str, State], int]
) -> None:
    """Adds changes to the counts of notifications."""
    connection.executemany(
        "INSERT INTO delivery_count VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
        [(nid, channel, int(state), change) for (nid, channel, state), change in counts.items() if change],
    )


def _begin(
    connection: sqlite3.Connection, shipment: Shipment, due_ms: int, counts: Counter[tuple[int, str, State]]
) -> Shipment | None:
    begun = connection.execute(
        f"UPDATE delivery SET state = 3, attempt = attempt + 1, due_ms = ? WHERE {_KEY} AND state = 1 AND attempt = ?",
        (due_ms, *shipment.key, shipment.attempt),
    )
    if not begun.rowcount:
        return None  # another worker has it, or it ended
    _count_move(counts, shipment.key, State.QUEUED, State.SENDING)
    return replace(shipment, attempt=shipment.attempt + 1)


def _settle(connection: sqlite3.Connection, outcome: Outcome, counts: Counter[tuple[int, str, State]]) -> None:
    row = connection.execute(f"SELECT state, attempt FROM delivery WHERE {_KEY}", outcome.key).fetchone()
    if row is None or not may_settle(State(row[0]), row[1], outcome.state, outcome.attempt):
        return
    is_over = outcome.state is State.DEFERRED and _is_cancelled(connection, outcome.key.nid)
    state = State.CANCELLED if is_over else outcome.state
    doubt = ", doubt = 1" if outcome.state is State.DEFERRED and outcome.reason == "doubt" else ""
    connection.execute(
        f"UPDATE delivery SET state = ?, due_ms = ?, reason = ?, ref = ?{doubt} WHERE {_KEY}",
        (int(state), outcome.retry_at_ms or 0, outcome.reason, outcome.ref, *outcome.key),
    )
    _count_move(counts, outcome.key, State(row[0]), state)
    if outcome.reason == "address":
        connection.execute(
            "UPDATE address SET state = 'invalid', reason = ? WHERE aid = ? AND value = ?",
            (outcome.ref, outcome.key.aid, outcome.value),
        )


def _is_cancelled(connection: sqlite3.Connection, nid: int) -> bool:
    """Whether a notification was cancelled: what of it was being sent then is not sent again."""
    row = connection.execute("SELECT 1 FROM notification WHERE nid = ? AND state = 'cancelled'", (nid,)).fetchone()
    return row is not None


def _settle_gone(connection: sqlite3.Connection, key: DeliveryKey, counts: Counter[tuple[int, str, State]]) -> None:
    connection.execute(f"UPDATE delivery SET state = 6, reason = 'address' WHERE {_KEY}", key)
    _count_move(counts, key, State.QUEUED, State.FAILED)


def _make_shipment(
    connection: sqlite3.Connection, key: DeliveryKey, attempt: int, is_doubtful: bool
) -> Shipment | None:
    row = connection.execute(
        "SELECT rid, aid, receiver.name, value, secret FROM address JOIN receiver USING (rid) WHERE aid = ?", (key.aid,)
    ).fetchone()
    if row is None:
        return None
    tenant, expires_ms = connection.execute(
        "SELECT tenant, expires_ms FROM notification WHERE nid = ?", (key.nid,)
    ).fetchone()
    return Shipment(key, tenant, Target(*row), attempt, expires_ms, is_doubtful)


def _count_move(counts: Counter[tuple[int, str, State]], key: DeliveryKey, before: State, after: State) -> None:
    counts[key.nid, key.channel, before] -= 1
    counts[key.nid, key.channel, after] += 1
