"""Accepting and routing in the embedded store, and the state of a notification.

A notification is one row with the numbers of its receivers. Its own number comes from the counter that also orders
changes of receivers. Routing makes one job for each channel; a repeat changes nothing. A notification that is due at once
is routed in the transaction that accepts it.
"""

from __future__ import annotations

import array
import bisect
import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec

from ...model import NO_OPTIONS, Options, Priority, State
from .deciding import find_category, read_options
from .groups import find_group
from .manage.pausing import TEMPLATE, list_paused
from .many.rows import pack_list, run_on_rows
from .receivers import find_receiver, find_receivers, keep_until, put_address, put_receiver, take_number
from .tenants import find_exceeded, take_bytes

LOOKED_AT_MAX = 32
"""How many receivers' addresses routing reads, to avoid jobs that find no address."""
PAST_MS_MAX = 60_000
"""How far in the past `send_at` may be, because of the request's duration."""


class Accepted(NamedTuple):
    """The result of accepting. `conflict`: the id exists with another body. `unknown`: names that do not exist."""

    id: str
    is_duplicate: bool = False
    is_conflict: bool = False
    unknown: tuple[str, ...] = ()
    lacks_group: bool = False
    is_past: bool = False
    quota: str = ""
    """The quota that is exceeded."""
    channels: tuple[str, ...] = ()
    """The channels that have a job of it now. If there are none, the router must look at it."""


class Draft(NamedTuple):
    """A notification to accept. `new_receivers` are created or replaced first: (name, attributes)."""

    tenant: str
    id: str
    fingerprint: bytes
    body: bytes
    receivers: tuple[str, ...]
    new_receivers: tuple[tuple[str, bytes], ...]
    is_single: bool
    expires_ms: int
    group: str | None = None
    """A group instead of receivers; `receivers` are then excluded."""
    due_ms: int = 0
    priority: Priority = Priority.NORMAL
    options: Options = Options()
    default_expires_from_ms: int | None = None
    """Set if the request has no expiry: the time from which the category's default counts."""
    address: tuple[str, str] | None = None
    """Channel and value of the one address, for a notification without a receiver."""
    rendered: tuple[tuple[str, str, bytes], ...] = ()
    """Content of a template: channel (empty: all), locale (empty: the default), JSON."""
    channels: tuple[str, ...] = ()
    """The channels that are set up; empty: the notification is routed later."""


class _Routed(NamedTuple):
    """A notification, as its jobs need it."""

    nid: int
    tenant: str
    priority: int
    options: Options
    targets: bytes | None
    """Its receivers; None: so many that their addresses are not read."""
    channels: Sequence[str]


class NotificationRow(NamedTuple):
    """A notification and its counts: (channel, state, count)."""

    id: str
    state: str
    accepted_ms: int
    expires_ms: int
    receivers: int | None
    """How many receivers it lists; None for a group."""
    due_ms: int
    options: Options
    counts: tuple[tuple[str, str, int], ...]
    paused: tuple[str, ...] = ()
    """Channels on which it is paused."""
    rest: int | None = None
    """Of a cancelled one: how many of the listed receivers no channel had examined. They have no deliveries."""


def accept(connection: sqlite3.Connection, draft: Draft, now_ms: int) -> Accepted:
    """Insert the notification, unless its id exists."""
    known = find_fingerprint(connection, draft.tenant, draft.id)
    if known is not None:
        return Accepted(draft.id, is_duplicate=True, is_conflict=known != draft.fingerprint)
    if is_past(draft, now_ms):
        return Accepted(draft.id, is_past=True)
    options = pack_options(draft.options)
    size = len(draft.body) + len(options) + sum(len(content) for _, _, content in draft.rendered)
    if quota := find_exceeded(connection, draft.tenant, size + 8 * len(set(draft.receivers)), now_ms):
        return Accepted(draft.id, quota=quota)
    for name, attributes in draft.new_receivers:
        if attributes != b"{}" or find_receiver(connection, draft.tenant, name) is None:  # an id alone changes nothing
            put_receiver(connection, draft.tenant, name, attributes, now_ms)
    if draft.address is not None:
        put_address(connection, draft.tenant, draft.receivers[0], "address", *draft.address)
        keep_until(connection, draft.tenant, draft.receivers[0], find_expiry(connection, draft))
    rids, unknown = find_receivers(connection, draft.tenant, draft.receivers)
    if unknown and draft.is_single:
        return Accepted(draft.id, unknown=tuple(unknown))
    gid, version = (0, 0) if draft.group is None else find_group(connection, draft.tenant, draft.group) or (0, -1)
    if version < 0:
        return Accepted(draft.id, lacks_group=True)
    take_bytes(connection, draft.tenant, size + 8 * len(rids))
    row = (*make_row(draft, options, find_expiry(connection, draft), now_ms), pack_numbers(rids), gid, version)
    run_on_rows(connection, INSERT, [(*row, take_number(connection))])
    nid = connection.execute("SELECT last_insert_rowid()").fetchone()[0]
    connection.executemany("INSERT INTO rendered VALUES (?, ?, ?, ?)", [(nid, *row) for row in draft.rendered])
    (channels,) = route_accepted(connection, [(nid, draft, row[-3])])
    return Accepted(draft.id, unknown=tuple(unknown), channels=channels)


def is_routed_at_once(draft: Draft) -> bool:
    """Whether its jobs are made in the transaction that accepts it: it is due, and its content is rendered."""
    return bool(draft.channels) and not draft.due_ms and not draft.options.is_personal


def route_accepted(
    connection: sqlite3.Connection, accepted: Sequence[tuple[int, Draft, bytes]]
) -> list[tuple[str, ...]]:
    """Make the jobs of notifications, each given with its number and its packed receivers, that are routed at once. Returns the
    channels of each that have a job.
    """
    wanted = [
        _Routed(nid, draft.tenant, int(draft.priority), draft.options, _choose_targets(draft, targets), draft.channels)
        for nid, draft, targets in accepted
        if is_routed_at_once(draft)
    ]
    made = _insert_jobs(connection, wanted)
    return [made.get(nid, ()) for nid, _, _ in accepted]


def _choose_targets(draft: Draft, targets: bytes) -> bytes | None:
    return targets if draft.group is None and len(targets) <= 8 * LOOKED_AT_MAX else None


def is_past(draft: Draft, now_ms: int) -> bool:
    """Whether its time had passed when it was sent."""
    return 0 < draft.due_ms < now_ms - PAST_MS_MAX


def find_fingerprint(connection: sqlite3.Connection, tenant: str, name: str) -> bytes | None:
    """The fingerprint of a notification's body; None if there is no notification of this id."""
    row = connection.execute(
        "SELECT fingerprint FROM notification WHERE tenant = ? AND id = ?", (tenant, name)
    ).fetchone()
    return None if row is None else bytes(row[0])


INSERT = (
    "INSERT INTO notification (tenant, id, fingerprint, body, state, accepted_ms, due_ms, expires_ms, priority, options, collapse_key, "
    "targets, gid, version, accepted)"
)


def make_row(draft: Draft, options: bytes, expires_ms: int, now_ms: int) -> tuple[Any, ...]:
    """The row of a draft for `INSERT`, without its receivers and its number."""
    state = "routed" if is_routed_at_once(draft) else "accepted"
    begin = (draft.tenant, draft.id, draft.fingerprint, draft.body, state, now_ms, draft.due_ms, expires_ms)
    return (*begin, int(draft.priority), options, draft.options.collapse_key)


def pack_options(options: Options) -> bytes:
    """The stored form of the options; empty if all have their defaults."""
    return b"" if options == NO_OPTIONS else msgspec.json.encode(options)


def find_expiry(connection: sqlite3.Connection, draft: Draft) -> int:
    """The expiry of the request, or the default of its category, or the general one."""
    begin_ms = draft.default_expires_from_ms
    if begin_ms is None or not draft.options.category:
        return draft.expires_ms
    category = find_category(connection, draft.tenant, draft.options.category)
    expires_s = None if category is None else category[1]
    return draft.expires_ms if expires_s is None else begin_ms + expires_s * 1_000


def route(connection: sqlite3.Connection, channels: Sequence[str], now_ms: int, limit: int) -> list[str]:
    """Make the jobs of accepted notifications that are due; returns the tenants that now have work. If content is rendered
    for each receiver, rendering is the first job, and those of the channels follow.
    """
    rows = connection.execute(
        "SELECT nid, tenant, priority, options FROM notification WHERE state = 'accepted' AND due_ms <= ? ORDER BY due_ms, nid LIMIT ?",
        (now_ms, limit),
    ).fetchall()
    if not rows:
        return []
    personal = {row[0] for row in rows if read_options(row[3]).is_personal}
    made = [(nid, TEMPLATE, tenant, 0, 0, 0, 0, priority, 0) for nid, tenant, priority, _ in rows if nid in personal]
    run_on_rows(connection, "INSERT OR IGNORE INTO job", made)
    nids = [row[0] for row in rows]
    make_jobs(connection, [nid for nid in nids if nid not in personal], channels)
    connection.execute(
        "UPDATE notification SET state = 'routed' WHERE nid IN (SELECT value FROM json_each(?)) AND state = 'accepted'",
        (pack_list(nids),),
    )
    return [row[1] for row in rows]


def make_jobs(connection: sqlite3.Connection, nids: Sequence[int], channels: Sequence[str]) -> None:
    """Insert the jobs of notifications on their channels; a repeat changes nothing."""
    rows = connection.execute(
        "SELECT nid, tenant, priority, options, iif(gid = 0 AND length(targets) <= ?, targets, NULL) FROM notification "
        "WHERE nid IN (SELECT value FROM json_each(?))",
        (8 * LOOKED_AT_MAX, pack_list(nids)),
    ).fetchall()
    wanted = [
        _Routed(nid, tenant, priority, read_options(packed), targets, channels)
        for nid, tenant, priority, packed, targets in rows
    ]
    _insert_jobs(connection, wanted)


def _insert_jobs(connection: sqlite3.Connection, wanted: Sequence[_Routed]) -> dict[int, tuple[str, ...]]:
    """The channels of each notification that have a job."""
    numbers = {one.nid: unpack_numbers(one.targets) for one in wanted if one.targets is not None}
    reachable = _list_reachable(connection, {rid for rids in numbers.values() for rid in rids})
    made = []
    channels: dict[int, tuple[str, ...]] = {}
    for nid, tenant, priority, options, _, known in wanted:
        for channel, step in _list_jobs(options, known):
            # the pages of a policy's first step also make routes
            if (
                options.steps
                or channel == "inbox"
                or nid not in numbers
                or any((rid, channel) in reachable for rid in numbers[nid])
            ):
                made.append((nid, channel, tenant, 0, 0, 0, 0, priority, step))
                channels[nid] = (*channels.get(nid, ()), channel)
    run_on_rows(connection, "INSERT OR IGNORE INTO job", made)
    return channels


def _list_reachable(connection: sqlite3.Connection, rids: Collection[int]) -> set[tuple[int, str]]:
    """Receivers with the channels on which they have an address: a job of another channel would cost two commits for nothing."""
    return set(
        connection.execute(
            "SELECT DISTINCT rid, channel FROM address WHERE rid IN (SELECT value FROM json_each(?)) AND state = 'active'",
            (pack_list(rids),),
        )
    )


def next_due_ms(connection: sqlite3.Connection) -> int | None:
    """When the next accepted notification is due."""
    found = connection.execute("SELECT min(due_ms) FROM notification WHERE state = 'accepted'").fetchone()[0]
    return None if found is None else int(found)


def _list_jobs(options: Options, channels: Sequence[str]) -> list[tuple[str, int]]:
    """Channel and step of each job: the first step of a policy that has a channel here, or every channel."""
    if options.steps:
        steps = [(step.channel, number) for number, step in enumerate(options.steps) if step.channel in channels]
        return steps[:1]
    wanted = (options.channel,) if options.channel else channels
    return [(channel, 0) for channel in wanted if channel in channels]


def read_notification(connection: sqlite3.Connection, tenant: str, name: str) -> NotificationRow | None:
    """A notification with its counts; `settled` once all deliveries are final."""
    row = connection.execute(
        "SELECT nid, state, accepted_ms, expires_ms, IIF(gid = 0, length(targets) / 8, NULL), due_ms, options FROM notification "
        "WHERE tenant = ? AND id = ?",
        (tenant, name),
    ).fetchone()
    if row is None:
        return None
    nid, state, accepted_ms, expires_ms, receivers, due_ms, packed = row
    counts = connection.execute(
        "SELECT channel, state, count FROM delivery_count WHERE nid = ? AND count > 0 ORDER BY channel, state", (nid,)
    ).fetchall()
    if state == "routed":
        left = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM job WHERE nid = ? AND is_done <> 1) OR EXISTS (SELECT 1 FROM route WHERE nid = ?)",
            (nid, nid),
        ).fetchone()[0]
        is_open = left or any(State(number) in (State.QUEUED, State.DEFERRED, State.SENDING) for _, number, _ in counts)
        state = "running" if is_open else "settled"
    paused = list_paused(connection, nid) if state == "running" else ()
    state = "paused" if paused else state
    labelled = tuple((channel, State(number).label, count) for channel, number, count in counts)
    rest = _count_rest(connection, nid) if state == "cancelled" and receivers is not None else None
    return NotificationRow(
        name, state, accepted_ms, expires_ms, receivers, due_ms, read_options(packed), labelled, paused, rest
    )


def _count_rest(connection: sqlite3.Connection, nid: int) -> int:
    """How many listed receivers come after the cursors of all channels."""
    targets, cursor = connection.execute(
        "SELECT targets, (SELECT coalesce(max(cursor), 0) FROM job WHERE job.nid = notification.nid AND channel <> ?) "
        "FROM notification WHERE nid = ?",
        (TEMPLATE, nid),
    ).fetchone()
    numbers = unpack_numbers(targets)
    return len(numbers) - bisect.bisect_right(numbers, cursor)


def read_live(connection: sqlite3.Connection, tenant: str, name: str) -> tuple[int, dict[str, Any]] | None:
    """A notification's number, and its state and counts in the published form."""
    row = read_notification(connection, tenant, name)
    if row is None:
        return None
    nid = connection.execute("SELECT nid FROM notification WHERE tenant = ? AND id = ?", (tenant, name)).fetchone()[0]
    return int(nid), {"id": name, "state": row.state, "counts": show_counts(row)}


def show_counts(row: NotificationRow) -> dict[str, dict[str, int]]:
    """Counts by channel and state."""
    counts: dict[str, dict[str, int]] = {}
    for channel, state, count in row.counts:
        counts.setdefault(channel, {})[state] = count
    return counts


def pack_numbers(numbers: Sequence[int]) -> bytes:
    """Numbers, packed as eight bytes each."""
    return array.array("q", numbers).tobytes()


def unpack_numbers(packed: bytes) -> array.array[int]:
    """The numbers of `pack_numbers`."""
    numbers = array.array("q")
    numbers.frombytes(packed)
    return numbers
