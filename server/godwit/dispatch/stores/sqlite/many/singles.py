"""Processes many inbox jobs with one receiver each in one unit: the statements run for all of them at once.

Most notifications have one receiver, and a claim, a page and counts of its own for each cost more than the item itself.
Only jobs that need nothing else are included, and only those that come first in the order of claims, so that the order is
kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from .....logs import read_logger
from ....model import DeliveryKey, Head, InboxItem, Priority, State, Target
from ..accept import unpack_numbers
from ..changes import Changes
from ..deciding import Facts, decide_all, find_category, read_options
from ..retention import remove_oldest
from ..tenants import count_left
from .rows import read_all, run_on_rows

AT_ONCE = 200
"""Jobs in a unit, which takes some milliseconds at most, because accepts wait for it."""


class Single(NamedTuple):
    """A due inbox job with one receiver, and its notification."""

    facts: Facts
    rid: int
    notification: str
    body: bytes


class Inbox(NamedTuple):
    """A receiver, with what an append needs."""

    name: str
    profile: bytes
    epoch: int
    counts: list[int]
    """SEQ, unread, unseen and items, updated by each append."""


_JOBS = msgspec.json.Decoder(list[tuple[int, str, str | None, int, str, int, int, str, str]])
_INBOXES = msgspec.json.Decoder(list[tuple[int, str, str, int, int, int, int, int]])


def append_singles(
    connection: sqlite3.Connection, tenant: str | None, now_ms: int, limit: int, items_max: int
) -> tuple[int, list[InboxItem]]:
    """Append the items of up to `limit` jobs; returns the number of jobs, and the items. None if one fails: they are then
    processed one by one.
    """
    jobs = _find_singles(connection, tenant, now_ms, min(limit, AT_ONCE))
    if not jobs:
        return 0, []
    connection.execute("SAVEPOINT singles")
    try:
        items = _append(connection, jobs, now_ms, items_max)
    except sqlite3.OperationalError:
        raise  # the disk or the file: the whole unit failed
    except Exception as error:
        connection.execute("ROLLBACK TO singles")
        read_logger().warning("dispatch_jobs_taken_apart", count=len(jobs), reason=f"{type(error).__name__}: {error}")
        jobs, items = [], []
    connection.execute("RELEASE singles")
    return len(jobs), items


def _find_singles(connection: sqlite3.Connection, tenant: str | None, now_ms: int, limit: int) -> list[Single]:
    """The first due jobs, up to the first that has several receivers or needs the receiver's other items."""
    order, one = ("job_order", "") if tenant is None else ("job_due", "AND job.tenant = ?3 ")
    (text,) = connection.execute(
        "SELECT json_group_array(json_array(nid, tenant, targets, priority, id, expires_ms, is_cancelled, options, body)) FROM ("
        "SELECT nid, job.tenant, IIF(gid = 0 AND length(targets) = 8 AND cursor = 0, hex(targets), NULL) AS targets, job.priority, "
        "id, expires_ms, state = 'cancelled' AS is_cancelled, CAST(options AS TEXT) AS options, CAST(body AS TEXT) AS body "
        f"FROM job INDEXED BY {order} CROSS JOIN notification USING (nid) "
        f"WHERE channel = 'inbox' AND is_done = 0 AND lease_end_ms <= ?1 {one}ORDER BY job.priority, nid LIMIT ?2)",
        (now_ms, limit, *([] if tenant is None else [tenant])),
    ).fetchone()
    found: list[Single] = []
    is_free = _Tenants(connection, now_ms)
    for nid, name, targets, priority, notification, expires_ms, is_cancelled, packed, body in _JOBS.decode(text):
        options = read_options(packed.encode())
        is_plain = not (options.steps or options.collapse_key or options.locales or options.is_personal)
        if targets is None or not is_plain or not is_free[name]:
            break
        is_required = bool(options.category) and (find_category(connection, name, options.category) or (False,))[0]
        facts = Facts(nid, name, expires_ms, Priority(priority), options, is_required, bool(is_cancelled))
        found.append(Single(facts, unpack_numbers(bytes.fromhex(targets))[0], notification, body.encode()))
    return found


class _Tenants(dict[str, bool]):
    """Whether tenants have no daily quota."""

    def __init__(self, connection: sqlite3.Connection, now_ms: int) -> None:
        super().__init__()
        self._connection, self._now_ms = connection, now_ms

    def __missing__(self, name: str) -> bool:
        self[name] = is_free = count_left(self._connection, name, self._now_ms) is None
        return is_free


def _append(connection: sqlite3.Connection, jobs: Sequence[Single], now_ms: int, items_max: int) -> list[InboxItem]:
    inboxes = _read_inboxes(connection, {job.rid for job in jobs})
    changes = Changes(connection, now_ms, {job.facts.nid: job.facts.tenant for job in jobs})
    deliveries = []
    items: list[InboxItem] = []
    stored = []
    for facts, rid, notification, body in jobs:
        if (inbox := inboxes.get(rid)) is None:
            continue  # erased since
        name, profile, epoch, counts = inbox
        (target,) = decide_all(connection, facts, "inbox", [(Target(rid, 0, name), profile)], now_ms)
        verdict, key = target.verdict, DeliveryKey(facts.nid, rid, "inbox", 0)
        state = State.SENT if verdict.state is State.QUEUED else verdict.state
        deliveries.append((*key, int(state), 0, verdict.due_ms, 0, verdict.reason, ""))
        changes.insert(key, state, verdict.reason)
        if state is State.SENT:
            counts[:] = [count + 1 for count in counts]
            seq, unread, unseen, _ = counts
            head = Head(epoch, seq, unread, unseen)
            items.append(InboxItem(facts.tenant, name, seq, head, notification, 0, now_ms, body, seq))
            stored.append((rid, seq, facts.nid, 0, now_ms, seq))
    run_on_rows(connection, "INSERT INTO delivery", deliveries)
    run_on_rows(connection, "INSERT INTO item", stored)
    run_on_rows(
        connection,
        "UPDATE head SET seq = column2, unread = column3, unseen = column4, items = column5 FROM (",
        [(rid, *inboxes[rid].counts) for rid in {row[0] for row in stored}],
        ") WHERE rid = column1",
    )
    run_on_rows(
        connection,
        "UPDATE job SET cursor = column2, is_done = 1, fence = fence + 1, lease_end_ms = 0 FROM (",
        [(job.facts.nid, job.rid) for job in jobs],
        ") WHERE nid = column1 AND channel = 'inbox'",
    )
    changes.store()
    tenants = {job.rid: job.facts.tenant for job in jobs}
    for rid, (name, _, _, counts) in inboxes.items():
        if counts[3] > items_max:
            items += remove_oldest(connection, rid, tenants[rid], name, counts[3] - items_max)
    return items


def _read_inboxes(connection: sqlite3.Connection, rids: Collection[int]) -> dict[int, Inbox]:
    text = read_all(
        connection,
        "SELECT json_group_array(json_array(rid, name, CAST(profile AS TEXT), head.epoch, seq, unread, unseen, items)) "
        "FROM json_each(?) AS wanted CROSS JOIN receiver ON rid = wanted.value JOIN head USING (rid)",
        list(rids),
    )
    rows = _INBOXES.decode(text)
    return {rid: Inbox(name, profile.encode(), epoch, counts) for rid, name, profile, epoch, *counts in rows}
