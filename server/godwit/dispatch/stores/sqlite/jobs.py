"""Jobs in the embedded store: cursors over the receivers of a notification on one channel.

Invariant: a page commits only under the job's fence, its deliveries and its checkpoint in one transaction.
"""

from __future__ import annotations

import bisect
import sqlite3
from collections.abc import Collection, Sequence

from ...model import DeliveryKey, Job, Page, Priority, State, Target
from .accept import unpack_numbers
from .changes import Changes
from .collapsing import supersede, take_value
from .deciding import Facts, decide_all, read_facts, read_options, read_targets
from .tenants import count_left, next_day_ms


def list_due_tenants(connection: sqlite3.Connection, channel: str, now_ms: int) -> list[str]:
    """The tenants with a job that nobody works on."""
    rows = connection.execute(
        "SELECT DISTINCT tenant FROM job WHERE channel = ? AND is_done = 0 AND lease_end_ms <= ?", (channel, now_ms)
    )
    return [tenant for (tenant,) in rows]


def claim_job(
    connection: sqlite3.Connection,
    channel: str,
    tenant: str | None,
    now_ms: int,
    lease_ms: int,
    priority_max: int = Priority.BULK,
) -> Job | None:
    """The most urgent due job, then the oldest, of one tenant or of any. Jobs of a tenant whose day is used up wait for the next."""
    which = "" if tenant is None else "AND tenant = ? "
    while True:
        row = connection.execute(
            "SELECT nid, tenant FROM job WHERE channel = ? AND is_done = 0 AND lease_end_ms <= ? AND priority <= ? "
            f"{which}ORDER BY priority, nid LIMIT 1",
            (channel, now_ms, int(priority_max), *(() if tenant is None else (tenant,))),
        ).fetchone()
        if row is None:
            return None
        if count_left(connection, row[1], now_ms) != 0:
            break
        connection.execute(
            "UPDATE job SET lease_end_ms = ? WHERE channel = ? AND tenant = ? AND is_done = 0 AND lease_end_ms <= ?",
            (next_day_ms(now_ms), channel, row[1], now_ms),
        )
    lease_end_ms = now_ms + lease_ms
    found = connection.execute(
        "UPDATE job SET fence = fence + 1, lease_end_ms = ? WHERE nid = ? AND channel = ? "
        "RETURNING tenant, cursor, fence, priority",
        (lease_end_ms, row[0], channel),
    ).fetchone()
    expires_ms, options = connection.execute(
        "SELECT expires_ms, options FROM notification WHERE nid = ?", row[:1]
    ).fetchone()
    name, cursor, fence, priority = found
    return Job(
        row[0], channel, name, cursor, fence, lease_end_ms, expires_ms, read_options(options), Priority(priority)
    )


def read_page(connection: sqlite3.Connection, job: Job, limit: int, now_ms: int) -> Page:
    """Receivers after the cursor that still exist, with their active addresses of the channel and the verdict on each."""
    left = count_left(connection, job.tenant, now_ms)
    page, is_last = _read_numbers(connection, job, limit if left is None else max(1, min(limit, left)))
    facts = read_facts(connection, job.nid)
    if not page or facts is None:
        return Page((), job.cursor, True)
    left_out = _read_left_out(connection, job)
    wanted = [rid for rid in page if rid not in left_out]
    targets = decide_all(connection, facts, job.channel, read_targets(connection, job.channel, wanted), now_ms)
    return Page(targets, page[-1], is_last, tuple(wanted) if job.options.steps else ())


def commit_page(
    connection: sqlite3.Connection, job: Job, page: Page, due_ms: int, now_ms: int
) -> tuple[DeliveryKey, ...] | None:
    """The intent and the checkpoint in one; None where the fence is another's."""
    if not move_cursor(connection, job, page):
        return None
    changes = Changes(connection, now_ms)
    inserted = insert_deliveries(connection, job, page, due_ms, changes)
    changes.store()
    return inserted


def move_cursor(connection: sqlite3.Connection, job: Job, page: Page) -> bool:
    """The checkpoint: false where another worker owns the job. The lease ends, so that the next page may go to anybody."""
    moved = connection.execute(
        "UPDATE job SET cursor = ?, is_done = ?, lease_end_ms = 0 WHERE nid = ? AND channel = ? AND fence = ?",
        (page.cursor, int(page.is_last), job.nid, job.channel, job.fence),
    )
    return moved.rowcount == 1


def insert_deliveries(
    connection: sqlite3.Connection,
    job: Job,
    page: Page,
    due_ms: int,
    changes: Changes,
    queued: State = State.QUEUED,
) -> tuple[DeliveryKey, ...]:
    """Inserts the rows that were missing; those that go out now, as `queued`. Receivers of a policy's step get their route."""
    due: list[DeliveryKey] = []
    if _are_plain(connection, job, page):
        due += _insert_plain(connection, job, page, due_ms, changes, queued)
    else:
        for target in page.targets:
            key = DeliveryKey(job.nid, target.rid, job.channel, target.aid)
            if insert_delivery(connection, key, target, job, due_ms, changes, queued) is queued:
                due.append(key)
    if job.options.steps:
        add_routes(connection, job, page, changes.now_ms)
    return tuple(due)


def _are_plain(connection: sqlite3.Connection, job: Job, page: Page) -> bool:
    """Whether no row of a page can be there already or end before it is sent: they are inserted at once."""
    if not page.targets or job.options.collapse_key or job.options.dedupe:
        return False
    row = connection.execute(
        "SELECT 1 FROM delivery WHERE nid = ? AND rid BETWEEN ? AND ? AND channel = ? LIMIT 1",
        (job.nid, page.targets[0].rid, page.targets[-1].rid, job.channel),
    ).fetchone()
    return row is None


def _insert_plain(
    connection: sqlite3.Connection, job: Job, page: Page, due_ms: int, changes: Changes, queued: State
) -> list[DeliveryKey]:
    rows = []
    by_verdict: dict[tuple[State, str], list[DeliveryKey]] = {}
    for target in page.targets:
        verdict = target.verdict
        state = queued if verdict.state is State.QUEUED else verdict.state
        key = DeliveryKey(job.nid, target.rid, job.channel, target.aid)
        rows.append((*key, int(state), verdict.due_ms or due_ms, verdict.reason))
        by_verdict.setdefault((state, verdict.reason), []).append(key)
    connection.executemany("INSERT INTO delivery VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?, '')", rows)
    for (state, reason), keys in by_verdict.items():
        changes.insert_all(keys, state, reason)
    return by_verdict.get((queued, ""), [])


def insert_delivery(
    connection: sqlite3.Connection,
    key: DeliveryKey,
    target: Target,
    job: Job | Facts,
    due_ms: int,
    changes: Changes,
    queued: State,
) -> State | None:
    """Inserts one delivery; the state it got, None where it was there."""
    verdict = target.verdict
    state = queued if verdict.state is State.QUEUED else verdict.state
    done = connection.execute(
        "INSERT OR IGNORE INTO delivery VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?, '')",
        (*key, int(state), verdict.due_ms or due_ms, verdict.reason),
    )
    if not done.rowcount:
        return None
    options = job.options
    if state in (queued, State.DEFERRED):
        reason = ""
        if options.collapse_key and not supersede(connection, key, options.collapse_key, changes):
            reason = "newer"
        elif options.dedupe and target.value and not take_value(connection, key, target.value):
            reason = "duplicate_address"
        if reason:
            state = State.COLLAPSED
            connection.execute(
                "UPDATE delivery SET state = 11, reason = ? WHERE nid = ? AND rid = ? AND channel = ? AND aid = ?",
                (reason, *key),
            )
            changes.insert(key, state, reason)
            return state
    changes.insert(key, state, verdict.reason)
    return state


def add_routes(connection: sqlite3.Connection, job: Job, page: Page, now_ms: int) -> None:
    """Each receiver of a page of a policy's first step, with the time at which the next step is looked at."""
    found = connection.execute("SELECT step FROM job WHERE nid = ? AND channel = ?", (job.nid, job.channel)).fetchone()
    step = int(found[0])
    wait_ms = job.options.steps[step].wait_s * 1_000
    starts: dict[int, int] = {}
    """When the first delivery of a receiver may go out: the step's time counts from there."""
    for target in page.targets:
        if target.verdict.state in (State.QUEUED, State.DEFERRED):
            start_ms = target.verdict.due_ms if target.verdict.state is State.DEFERRED else now_ms
            starts[target.rid] = min(start_ms, starts.get(target.rid, start_ms))
    rows = []
    for rid in page.rids:
        deadline_ms = starts.get(rid, now_ms) + wait_ms
        rows.append((job.nid, rid, step, deadline_ms if rid in starts else 0, deadline_ms))
    connection.executemany("INSERT OR IGNORE INTO route VALUES (?, ?, ?, ?, ?)", rows)


def _read_numbers(connection: sqlite3.Connection, job: Job, limit: int) -> tuple[Sequence[int], bool]:
    """Numbers of receivers after the cursor, and whether they are the last: those listed, or a group's as it was at the accept."""
    targets, gid, version, accepted = connection.execute(
        "SELECT targets, gid, version, accepted FROM notification WHERE nid = ?", (job.nid,)
    ).fetchone()
    if not gid:
        numbers = unpack_numbers(targets)
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
