"""Inboxes in the embedded store: append, fetch, and marks by receivers.

An item takes the next SEQ of its receiver, and so does each change of it. Only an item's latest change is kept, which is
enough for a client that was disconnected. The head has the epoch, the SEQ and the counts. Invariant: `unread` and
`unseen` equal the items that lack the flag and are not archived.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...model import IS_UNREAD, IS_UNSEEN, DeliveryKey, Flag, Head, InboxItem, Job, Page, State
from .changes import Changes
from .collapsing import find_replaced
from .contents import localize
from .deciding import read_facts
from .fanout import Due, hurry_route, settle_due
from .jobs import apart, claim_job, insert_deliveries, move_cursor, read_page, wake_put_off
from .many.rows import pack_list
from .many.singles import append_singles
from .retention import remove_oldest


class Fetched(NamedTuple):
    """Items after or before a position, and the head up to which they are complete."""

    head: Head
    items: tuple[InboxItem, ...]
    is_complete: bool


_ITEM = (
    "SELECT item.seq, notification.id, item.flags, item.at_ms, notification.body, item.nid, notification.options, "
    "item.first FROM item "
    "LEFT JOIN notification USING (nid) WHERE item.rid = ?"
)
JOBS_AT_ONCE = 50
"""The number of jobs in a unit with more than one receiver, or with options. A unit takes some milliseconds at most, because
accepts wait for it.
"""
_RID = object()
"""A placeholder for the receiver's number before its name was looked up."""


def append_pages(
    connection: sqlite3.Connection, tenant: str | None, now_ms: int, lease_ms: int, limit: int, items_max: int
) -> tuple[int, list[InboxItem]]:
    """Claim due jobs and append their next pages, `limit` receivers in all. Returns the number of jobs, and the items.
    Claim, intent and checkpoint are one unit. Most jobs have one receiver; each alone would need a commit of its own.
    """
    wake_put_off(connection, "inbox", now_ms)
    count, items = append_singles(connection, tenant, now_ms, limit, items_max)
    left = limit - count
    while left > 0 and count < JOBS_AT_ONCE:
        if (job := claim_job(connection, "inbox", tenant, now_ms, lease_ms)) is None:
            break
        with apart(connection, job):
            page = read_page(connection, job, left, now_ms)
            items += append_page(connection, job, page, now_ms, items_max) or ()
            left -= len(page.targets)
        count += 1
    return count, items


def append_page(
    connection: sqlite3.Connection, job: Job, page: Page, now_ms: int, items_max: int
) -> list[InboxItem] | None:
    """Insert a page's deliveries and items and move the cursor; None if another worker owns the job."""
    if not move_cursor(connection, job, page):
        return None
    changes = Changes(connection, now_ms, {job.nid: job.tenant})
    inserted = insert_deliveries(connection, job, page, 0, changes, State.SENT)
    items: list[InboxItem] = []
    if inserted:
        if job.options.steps:
            connection.execute(
                "UPDATE route SET due_ms = 0 WHERE nid = ? AND rid BETWEEN ? AND ?",
                (job.nid, inserted[0].rid, inserted[-1].rid),
            )
        origin = _read_origin(connection, job.tenant, job.nid, job.options.collapse_key)
        names = {target.rid: target.receiver for target in page.targets}
        if job.options.collapse_key or job.options.locales or job.options.is_personal:
            for key in inserted:
                items += _append(connection, key, names[key.rid], origin, now_ms, items_max)
        else:
            items = _append_all(connection, [key.rid for key in inserted], names, job.nid, origin, now_ms, items_max)
    changes.store()
    return items


def append_due(connection: sqlite3.Connection, now_ms: int, limit: int, items_max: int) -> tuple[int, list[InboxItem]]:
    """Append deferred items that are due. Returns the number of deliveries examined, and the items."""
    rows = connection.execute(
        "SELECT nid, rid, aid, state FROM delivery WHERE channel = 'inbox' AND state IN (1, 2, 3) AND due_ms <= ? "
        "ORDER BY due_ms LIMIT ?",
        (now_ms, limit),
    ).fetchall()
    changes = Changes(connection, now_ms)
    items: list[InboxItem] = []
    for nid, rid, aid, state in rows:
        key, facts = DeliveryKey(nid, rid, "inbox", aid), read_facts(connection, nid)
        target = settle_due(connection, Due(key, State(state), 0, False, facts), changes)
        if target is None or facts is None:
            continue
        connection.execute(
            "UPDATE delivery SET state = 4, reason = '' WHERE nid = ? AND rid = ? AND channel = 'inbox'", key[:2]
        )
        changes.move(key, State(state), State.SENT)
        hurry_route(connection, key)
        origin = _read_origin(connection, facts.tenant, nid, facts.options.collapse_key)
        items += _append(connection, key, target.receiver, origin, now_ms, items_max)
    changes.store()
    return len(rows), items


class Origin(NamedTuple):
    """The properties that all items of a notification share."""

    tenant: str
    notification: str
    body: bytes
    options: bytes
    collapse_key: str


def _append_all(
    connection: sqlite3.Connection,
    rids: list[int],
    names: Mapping[int, str],
    nid: int,
    origin: Origin,
    now_ms: int,
    items_max: int,
) -> list[InboxItem]:
    """Append items that replace none and are the same for all receivers, with one run of the statements."""
    numbers = pack_list(rids)
    connection.execute(
        "UPDATE head SET seq = seq + 1, unread = unread + 1, unseen = unseen + 1, items = items + 1 "
        "WHERE rid IN (SELECT value FROM json_each(?))",
        (numbers,),
    )
    connection.execute(
        "INSERT INTO item SELECT rid, seq, ?, 0, ?, seq FROM head WHERE rid IN (SELECT value FROM json_each(?))",
        (nid, now_ms, numbers),
    )
    heads = connection.execute(
        "SELECT rid, epoch, seq, unread, unseen, items FROM head WHERE rid IN (SELECT value FROM json_each(?))",
        (numbers,),
    ).fetchall()
    items = []
    tenant, notification, body = origin.tenant, origin.notification, origin.body
    for rid, epoch, seq, unread, unseen, count in heads:
        head = Head(epoch, seq, unread, unseen)
        items.append(InboxItem(tenant, names[rid], seq, head, notification, 0, now_ms, body, seq))
        if count > items_max:
            items += remove_oldest(connection, rid, tenant, names[rid], count - items_max)
    return items


def _read_origin(connection: sqlite3.Connection, tenant: str, nid: int, collapse_key: str) -> Origin:
    name, body, options = connection.execute(
        "SELECT id, body, options FROM notification WHERE nid = ?", (nid,)
    ).fetchone()
    return Origin(tenant, name, body, options, collapse_key)


def _append(
    connection: sqlite3.Connection, key: DeliveryKey, receiver: str, origin: Origin, now_ms: int, items_max: int
) -> list[InboxItem]:
    """The new item, after the changes of those it replaces and before those of the oldest items, if there are too many."""
    replaced: list[InboxItem] = []
    if origin.collapse_key:
        replaced = recall_items(
            connection, key.rid, find_replaced(connection, key, origin.collapse_key), origin.tenant, receiver
        )
    row = connection.execute(
        "UPDATE head SET seq = seq + 1, unread = unread + 1, unseen = unseen + 1, items = items + 1 WHERE rid = ? "
        "RETURNING epoch, seq, unread, unseen, items",
        (key.rid,),
    ).fetchone()
    connection.execute("INSERT INTO item VALUES (?, ?, ?, 0, ?, ?)", (key.rid, row[1], key.nid, now_ms, row[1]))
    head, surplus = Head(*row[:4]), row[4] - items_max
    body = localize(connection, key.rid, key.nid, origin.options, origin.body)
    item = InboxItem(origin.tenant, receiver, head.seq, head, origin.notification, 0, now_ms, body, head.seq)
    removed = remove_oldest(connection, key.rid, origin.tenant, receiver, surplus) if surplus > 0 else []
    return [*replaced, item, *removed]


def recall_items(
    connection: sqlite3.Connection, rid: int, seqs: Sequence[int], tenant: str, receiver: str
) -> list[InboxItem]:
    """Withdraw items: each becomes a change with the flag, and clients remove it."""
    changed = []
    for seq in seqs:
        flags = connection.execute("SELECT flags FROM item WHERE rid = ? AND seq = ?", (rid, seq)).fetchone()[0]
        fresh = flags | Flag.RECALLED
        head = _change_head(connection, rid, 1, -int(IS_UNREAD[flags]), -int(IS_UNSEEN[flags]), 0)
        connection.execute("UPDATE item SET seq = ?, flags = ? WHERE rid = ? AND seq = ?", (head.seq, fresh, rid, seq))
        row = connection.execute(f"{_ITEM} AND item.seq = ?", (rid, head.seq)).fetchone()
        changed.append(_make_item(connection, rid, tenant, receiver, head, row))
    return changed


def recall_some(connection: sqlite3.Connection, nid: int, after: int, limit: int) -> tuple[list[InboxItem], int]:
    """Withdraw a notification's items of the receivers after number `after`; returns the changes, and the last receiver examined,
    0 at the end.
    """
    looked = connection.execute(
        "SELECT rid FROM delivery WHERE nid = ? AND rid > ? ORDER BY rid LIMIT ?", (nid, after, limit)
    ).fetchall()
    if not looked:
        return [], 0
    last = looked[-1][0]
    rows = connection.execute(
        "SELECT item.rid, item.seq, receiver.tenant, receiver.name FROM delivery JOIN item USING (rid, nid) "
        "JOIN receiver ON receiver.rid = item.rid "
        "WHERE nid = ? AND delivery.rid > ? AND delivery.rid <= ? AND channel = 'inbox' AND NOT item.flags & 16",
        (nid, after, last),
    ).fetchall()
    return [item for rid, seq, *owner in rows for item in recall_items(connection, rid, [seq], *owner)], last


def read_head(connection: sqlite3.Connection, tenant: str, receiver: str) -> tuple[int, Head] | None:
    """A receiver's number and head."""
    row = connection.execute(
        "SELECT rid, head.epoch, seq, unread, unseen FROM receiver JOIN head USING (rid) WHERE tenant = ? AND name = ?",
        (tenant, receiver),
    ).fetchone()
    return None if row is None else (int(row[0]), Head(*row[1:]))


def fetch_after(connection: sqlite3.Connection, tenant: str, receiver: str, after: int, limit: int) -> Fetched | None:
    """Items and changes after a SEQ, oldest first. Complete up to the head, unless `limit` was reached."""
    return _fetch(connection, tenant, receiver, " AND item.seq > ? ORDER BY item.seq LIMIT ?", (after,), limit)


class Filter(NamedTuple):
    """The items of a list: with no flag of `without`, with all of `flags`, and of `category` (empty: any)."""

    flags: int = 0
    without: int = 0
    category: str = ""


EVERYTHING = Filter()


def fetch_before(
    connection: sqlite3.Connection, tenant: str, receiver: str, before: int, limit: int, shown: Filter = EVERYTHING
) -> Fetched | None:
    """Items that arrived before a SEQ, newest first: a change does not move an item within the list."""
    which = "rid = ? AND first < ? AND flags & ? = ? AND flags & ? = 0"
    source = "item"
    bounds: tuple[object, ...] = (before, shown.flags, shown.flags, shown.without)
    if shown.category:
        source = "item JOIN notification USING (nid)"
        which += " AND iif(length(options), json_extract(CAST(options AS TEXT), '$.category'), '') = ?"
        bounds += (shown.category,)
    seqs = f"SELECT seq FROM {source} WHERE {which} ORDER BY first DESC LIMIT ?"
    which = f" AND item.seq IN ({seqs}) ORDER BY item.first DESC"
    return _fetch(connection, tenant, receiver, which, (_RID, *bounds), limit)


def _fetch(
    connection: sqlite3.Connection, tenant: str, receiver: str, which: str, bounds: tuple[object, ...], limit: int
) -> Fetched | None:
    found = read_head(connection, tenant, receiver)
    if found is None:
        return None
    rid, head = found
    given = (rid, *(rid if bound is _RID else bound for bound in bounds), limit + 1)
    rows = connection.execute(_ITEM + which, given).fetchall()
    items = tuple(_make_item(connection, rid, tenant, receiver, head, row) for row in rows[:limit])
    return Fetched(head, items, len(rows) <= limit)


def _change_head(connection: sqlite3.Connection, rid: int, seq: int, unread: int, unseen: int, items: int) -> Head:
    row = connection.execute(
        "UPDATE head SET seq = seq + ?, unread = unread + ?, unseen = unseen + ?, items = items + ? WHERE rid = ? "
        "RETURNING epoch, seq, unread, unseen",
        (seq, unread, unseen, items, rid),
    ).fetchone()
    return Head(*row)


def _make_item(
    connection: sqlite3.Connection,
    rid: int,
    tenant: str,
    receiver: str,
    head: Head,
    row: tuple[int, str, int, int, bytes, int, bytes | None, int],
) -> InboxItem:
    seq, name, flags, at_ms, body, nid, options, first = row
    content = localize(connection, rid, nid, options, body)
    return InboxItem(tenant, receiver, seq, head, name, flags, at_ms, content, first)
