"""Jobs in the embedded store: cursors over the receivers of a notification on one channel.

Invariant: a page commits only under the job's fence, its deliveries and its checkpoint in one transaction. A job is open
(`is_done` 0), done (1), put off to the next day (2), or paused (3); a waiting job does not slow down the claims of
others.
"""

from __future__ import annotations

import bisect
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from ....logs import read_logger
from ...model import DeliveryKey, Job, Page, Priority, State, Target
from .accept import unpack_numbers
from .changes import Changes
from .collapsing import supersede, take_value
from .deciding import Facts, decide_all, read_facts, read_options, read_targets
from .many.rows import pack_list
from .tenants import count_left, next_day_ms

_LISTED = "SELECT value FROM json_each(?)"
WAITING_LOOKED_AT = 200
"""How many jobs of tenants with a used-up daily quota one claim examines."""


def list_due_tenants(connection: sqlite3.Connection, channel: str, now_ms: int) -> list[str]:
    """The tenants with a job that no worker has claimed."""
    rows = connection.execute(
        "SELECT tenant FROM job WHERE channel = ?1 AND is_done = 0 AND lease_end_ms <= ?2 "
        "UNION SELECT tenant FROM job WHERE channel = ?1 AND is_done = 2 AND lease_end_ms <= ?2",
        (channel, now_ms),
    )
    return [tenant for (tenant,) in rows]


def claim_job(
    connection: sqlite3.Connection,
    channel: str,
    tenant: str | None,
    now_ms: int,
    lease_ms: int,
    priority_max: int = Priority.BULK,
    but: Collection[int] = (),
) -> Job | None:
    """Claim the most urgent due job, then the oldest, of one tenant or of any, of no notification in `but`. If the tenant's
    daily quota is used up, the job is put off to the next day, unless its next receivers have no address of the channel.
    """
    wake_put_off(connection, channel, now_ms)
    for _ in range(WAITING_LOOKED_AT):
        row = _find_due(connection, channel, tenant, now_ms, priority_max, but)
        if row is None:
            return None
        if count_left(connection, row[1], now_ms) != 0 or _needs_no_delivery(connection, row[0], channel):
            break
        connection.execute(
            "UPDATE job SET is_done = 2, lease_end_ms = ? WHERE nid = ? AND channel = ?",
            (next_day_ms(now_ms), row[0], channel),
        )
    else:
        return None  # the rest is looked at with the next claim: accepts wait for a unit
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


def wake_put_off(connection: sqlite3.Connection, channel: str, now_ms: int) -> None:
    """Reopen the jobs that were put off to this day."""
    connection.execute(
        "UPDATE job SET is_done = 0 WHERE channel = ? AND is_done = 2 AND lease_end_ms <= ?", (channel, now_ms)
    )


def _find_due(
    connection: sqlite3.Connection,
    channel: str,
    tenant: str | None,
    now_ms: int,
    priority_max: int,
    but: Collection[int],
) -> tuple[int, str] | None:
    """Number and tenant of the most urgent due job. An index has this order; the jobs skipped have been claimed."""
    order, one = ("job_order", "") if tenant is None else ("job_due", "AND tenant = :tenant ")
    others = "AND nid NOT IN (SELECT value FROM json_each(:but)) " if but else ""
    row: tuple[int, str] | None = connection.execute(
        f"SELECT nid, tenant FROM job INDEXED BY {order} WHERE channel = :channel AND is_done = 0 AND lease_end_ms <= :now_ms "
        f"AND priority <= :priority {one}{others}ORDER BY priority, nid LIMIT 1",
        {"channel": channel, "now_ms": now_ms, "priority": int(priority_max), "tenant": tenant, "but": pack_list(but)},
    ).fetchone()
    return row


def _needs_no_delivery(connection: sqlite3.Connection, nid: int, channel: str) -> bool:
    """Whether the next receivers of a job have no address of its channel, or there are none."""
    cursor, options = connection.execute(
        "SELECT cursor, options FROM job JOIN notification USING (nid) WHERE nid = ? AND channel = ?", (nid, channel)
    ).fetchone()
    job = Job(nid, channel, "", cursor, 0, 0, 0, read_options(options))
    page, _, left_out = read_numbers(connection, job, 1)
    return not read_targets(connection, channel, [rid for rid in page if rid not in left_out])


@contextmanager
def apart(connection: sqlite3.Connection, job: Job) -> Iterator[None]:
    """Undo the changes of a job that fails, and not those of others. It keeps its lease, so it is retried only when that ends."""
    connection.execute("SAVEPOINT job")
    try:
        yield
    except sqlite3.OperationalError:
        raise  # the disk or the file: the whole unit failed
    except Exception as error:
        connection.execute("ROLLBACK TO job")
        reason = f"{type(error).__name__}: {error}"
        read_logger().error("dispatch_job_failed", channel=job.channel, tenant=job.tenant, nid=job.nid, reason=reason)
    connection.execute("RELEASE job")


def read_page(connection: sqlite3.Connection, job: Job, limit: int, now_ms: int) -> Page:
    """Existing receivers after the cursor, with their active addresses of the channel and the verdict on each."""
    left = count_left(connection, job.tenant, now_ms)
    page, is_last, left_out = read_numbers(connection, job, limit if not left else min(limit, left))
    facts = read_facts(connection, job.nid)
    if not page or facts is None:
        return Page((), job.cursor, True)
    wanted = [rid for rid in page if rid not in left_out]
    found = read_targets(connection, job.channel, wanted)
    if found and left == 0:  # the daily quota is used up: continue to the first receiver with an address
        first = found[0][0].rid
        page, wanted, found, is_last = (
            [rid for rid in page if rid < first],
            [rid for rid in wanted if rid < first],
            [],
            False,
        )
        if not page:
            return Page((), job.cursor, False)
    targets = decide_all(connection, facts, job.channel, found, now_ms)
    return Page(targets, page[-1], is_last, tuple(wanted) if job.options.steps else ())


def commit_page(
    connection: sqlite3.Connection, job: Job, page: Page, due_ms: int, now_ms: int
) -> tuple[DeliveryKey, ...] | None:
    """Store the intent and the checkpoint together; None if another worker owns the job."""
    if not move_cursor(connection, job, page):
        return None
    changes = Changes(connection, now_ms, {job.nid: job.tenant})
    inserted = insert_deliveries(connection, job, _drop_erased(connection, page), due_ms, changes)
    changes.store()
    return inserted


def _drop_erased(connection: sqlite3.Connection, page: Page) -> Page:
    """The page without receivers and addresses that were deleted after it was read."""
    rids = pack_list({*page.rids, *(target.rid for target in page.targets)})
    kept = {rid for (rid,) in connection.execute(f"SELECT rid FROM receiver WHERE rid IN ({_LISTED})", (rids,))}
    aids = pack_list({target.aid for target in page.targets if target.aid > 0})
    active = {aid for (aid,) in connection.execute(f"SELECT aid FROM address WHERE aid IN ({_LISTED})", (aids,))}
    targets = tuple(one for one in page.targets if one.rid in kept and (one.aid <= 0 or one.aid in active))
    return Page(targets, page.cursor, page.is_last, tuple(rid for rid in page.rids if rid in kept))


def move_cursor(connection: sqlite3.Connection, job: Job, page: Page) -> bool:
    """Store the checkpoint; false if another worker owns the job. The lease ends, so that any worker may take the next page."""
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
    """Insert the missing rows; returns those to send now, as `queued`. Receivers of a policy's step get their route."""
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
    """Whether no row of a page can exist already or end before it is sent: then all are inserted at once."""
    if not page.targets or job.options.collapse_key or job.options.dedupe or job.options.is_personal:
        return False
    row = connection.execute(
        "SELECT 1 FROM delivery WHERE nid = ? AND rid BETWEEN ? AND ? AND channel = ? LIMIT 1",
        (job.nid, page.targets[0].rid, page.targets[-1].rid, job.channel),
    ).fetchone()
    return row is None


def _insert_plain(
    connection: sqlite3.Connection, job: Job, page: Page, due_ms: int, changes: Changes, queued: State
) -> list[DeliveryKey]:
    nid, channel = job.nid, job.channel
    by_verdict: dict[tuple[State, str], list[DeliveryKey]] = {}
    last, alike = None, []
    for target in page.targets:
        if (verdict := target.verdict) is not last:
            last, state = verdict, queued if verdict.state is State.QUEUED else verdict.state
            alike = by_verdict.setdefault((state, verdict.reason), [])
        alike.append(DeliveryKey(nid, target.rid, channel, target.aid))
    if channel == "inbox" and not job.options.local:  # nothing is deferred: one statement for each verdict
        for (state, reason), keys in by_verdict.items():
            connection.execute(
                "INSERT INTO delivery SELECT ?, value, 'inbox', 0, ?, 0, ?, 0, ?, '' FROM json_each(?)",
                (nid, int(state), due_ms, reason, pack_list(key.rid for key in keys)),
            )
    else:
        connection.executemany(
            "INSERT INTO delivery VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?, '')", _list_rows(job, page, due_ms, queued)
        )
    for (state, reason), keys in by_verdict.items():
        changes.insert_all(keys, state, reason)
    return by_verdict.get((queued, ""), [])


def _list_rows(job: Job, page: Page, due_ms: int, queued: State) -> Iterator[tuple[int | str, ...]]:
    for target in page.targets:
        verdict = target.verdict
        state = queued if verdict.state is State.QUEUED else verdict.state
        due = verdict.due_ms or due_ms
        yield job.nid, target.rid, job.channel, target.aid, int(state), due, verdict.reason


def insert_delivery(
    connection: sqlite3.Connection,
    key: DeliveryKey,
    target: Target,
    job: Job | Facts,
    due_ms: int,
    changes: Changes,
    queued: State,
) -> State | None:
    """Insert one delivery; returns its state, None if it existed."""
    verdict = target.verdict
    state = queued if verdict.state is State.QUEUED else verdict.state
    done = connection.execute(
        "INSERT OR IGNORE INTO delivery VALUES (?, ?, ?, ?, ?, 0, ?, 0, ?, ?)",
        (*key, int(state), verdict.due_ms or due_ms, verdict.reason, verdict.detail),
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
    """Insert the receivers of a page of a policy's first step, each with the time at which the next step is examined."""
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


def read_numbers(connection: sqlite3.Connection, job: Job, limit: int) -> tuple[Sequence[int], bool, Collection[int]]:
    """Numbers of receivers after the cursor, whether they are the last, and the excluded ones. They are those listed, or
    those in the group when the notification was accepted; for a group, the listed ones are excluded.
    """
    targets, gid, version, accepted = connection.execute(
        "SELECT targets, gid, version, accepted FROM notification WHERE nid = ?", (job.nid,)
    ).fetchone()
    numbers = unpack_numbers(targets)
    if not gid:
        begin = bisect.bisect_right(numbers, job.cursor)
        return numbers[begin : begin + limit], begin + limit >= len(numbers), ()
    rows = connection.execute(
        "SELECT rid FROM subscription WHERE gid = ? AND version = ? AND rid > ? AND since <= ? ORDER BY rid LIMIT ?",
        (gid, version, job.cursor, accepted, limit),
    ).fetchall()
    return [rid for (rid,) in rows], len(rows) < limit, frozenset(numbers)
