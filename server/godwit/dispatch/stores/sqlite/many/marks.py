"""What receivers do with their items, many calls in one unit: the statements run for all of them at once.

An item that a call changes takes the next SEQ of its receiver. Rows travel as one JSON text each way: after each step of a statement the
writer's thread waits for the interpreter's lock. Invariant: each result is that of the call alone, after those before it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import msgspec

from .....logs import read_logger
from ....model import IS_UNREAD, IS_UNSEEN, DeliveryKey, Head, InboxItem, State
from ..changes import Changes
from ..contents import localize
from ..fanout import hurry_routes
from .rows import PAIR, pack_rows, read_all, run_in_savepoint

ROWS_AT_ONCE = 400
"""Items that one unit looks at, about: accepts wait for it."""
DELIVERED = "delivered"
Position = tuple[int, int]
"""Epoch and SEQ."""


class Chosen(NamedTuple):
    """Which items a call is for: all up to a position, or those at these positions or of these notifications."""

    items: Sequence[Position] = ()
    ids: Sequence[str] = ()
    up_to: Position | None = None


class Call(NamedTuple):
    """What a receiver asks for: `sets` and `clears` are flags. The mark `delivered` changes no item: the client has them."""

    tenant: str
    receiver: str
    chosen: Chosen
    mark: str
    sets: int
    clears: int
    now_ms: int


class Marked(NamedTuple):
    """What a call changed: the items, each with its new SEQ."""

    items: tuple[InboxItem, ...]
    head: Head


class _Owner(NamedTuple):
    tenant: str
    name: str
    rid: int
    epoch: int
    seq: int
    unread: int
    unseen: int
    items: int


class _Row(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An item that a call changes, as it is stored."""

    rid: int
    seq: int
    nid: int
    flags: int
    at_ms: int
    first: int
    state: int
    """Of its delivery."""


class _Notification(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A notification, as its items need it."""

    nid: int
    tenant: str
    id: str
    body: str
    options: str


class _Content(NamedTuple):
    """What the items of a notification show. Without `options` it is the same for all receivers."""

    id: str
    body: bytes
    options: bytes


_FORGOTTEN = _Content("", b"{}", b"")
Name = tuple[str, str]
"""Tenant and receiver."""
Pair = tuple[int, int]
"""Numbers of a notification and a receiver."""
Result = Marked | None
_ORDER = attrgetter("rid", "seq")
_OWNERS, _ROWS, _NOTIFICATIONS, _PAIRS = (
    msgspec.json.Decoder(list[_Owner]),
    msgspec.json.Decoder(list[_Row]),
    msgspec.json.Decoder(list[_Notification]),
    msgspec.json.Decoder(list[Pair]),
)
_CALL = (
    "(SELECT json_extract(value, '$[0]') AS rid, json_extract(value, '$[1]') AS what, json_extract(value, '$[2]') AS sets, "
    "json_extract(value, '$[3]') AS clears, json_extract(value, '$[4]') AS tenant FROM json_each(?)) AS call"
)
_FIND = (
    "SELECT json_group_array(json_array(item.rid, item.seq, item.nid, item.flags, item.at_ms, item.first, coalesce((SELECT state "
    "FROM delivery WHERE delivery.nid = item.nid AND delivery.rid = item.rid AND channel = 'inbox' AND aid = 0), 0))) "
    f"FROM {_CALL} CROSS JOIN item ON item.rid = call.rid AND {{which}} "
    "WHERE NOT flags & 16 AND (flags | sets) & ~clears <> flags"
)
_NAMED = "nid = (SELECT nid FROM notification WHERE notification.tenant = call.tenant AND id = call.what)"
_IS_SENT = "channel = 'inbox' AND aid = 0 AND state = 4"


def mark_many(connection: sqlite3.Connection, calls: Sequence[Call]) -> list[Result | Exception]:
    """What the first of the calls came to, in their order; None: no such receiver. As many as look at some items together."""
    results: list[Result | Exception] = []
    left = ROWS_AT_ONCE
    while len(results) < len(calls) and left > 0:
        some = _take_distinct(calls[len(results) :])
        owners = _read_owners(connection, some)
        some = some[: _count_calls(some, owners, left)]
        left -= sum(_weigh(call, owners) for call in some) + len(some)
        results += _mark_all(connection, some, owners)
    return results


def _mark_all(
    connection: sqlite3.Connection, calls: Sequence[Call], owners: Mapping[Name, _Owner]
) -> Sequence[Result | Exception]:
    """Store each on its own after storing all together failed, so that one failure stops no other."""
    marked = run_in_savepoint(connection, lambda: _mark_distinct(connection, calls, owners))
    if not isinstance(marked, Exception):
        return marked
    if len(calls) == 1:
        return [marked]
    reason = f"{type(marked).__name__}: {marked}"
    read_logger().warning("dispatch_marks_taken_apart", count=len(calls), reason=reason)
    return [result for call in calls for result in _mark_all(connection, [call], owners)]


def _take_distinct(calls: Sequence[Call]) -> Sequence[Call]:
    """The calls before the first whose receiver has one already."""
    known: set[Name] = set()
    for at, call in enumerate(calls):
        if (call.tenant, call.receiver) in known:
            return calls[:at]
        known.add((call.tenant, call.receiver))
    return calls


def _count_calls(calls: Sequence[Call], owners: Mapping[Name, _Owner], rows_max: int) -> int:
    """How many of the calls look at no more items than that; at least one."""
    rows = 0
    for at, call in enumerate(calls):
        rows += _weigh(call, owners)
        if rows > rows_max and at:
            return at
    return len(calls)


def _weigh(call: Call, owners: Mapping[Name, _Owner]) -> int:
    owner = owners.get((call.tenant, call.receiver))
    items = 0 if owner is None else owner.items
    is_whole = call.chosen.up_to is not None or call.mark == DELIVERED  # which looks at all up to its position
    return items if is_whole else min(items, len(call.chosen.items) + len(call.chosen.ids))


def _read_owners(connection: sqlite3.Connection, calls: Sequence[Call]) -> dict[Name, _Owner]:
    found = read_all(
        connection,
        "SELECT json_group_array(json_array(tenant, name, rid, head.epoch, seq, unread, unseen, items)) FROM json_each(?) AS call "
        "CROSS JOIN receiver ON tenant = json_extract(call.value, '$[0]') AND name = json_extract(call.value, '$[1]') "
        "JOIN head USING (rid)",
        [(call.tenant, call.receiver) for call in calls],
    )
    return {(owner.tenant, owner.name): owner for owner in _OWNERS.decode(found)}


def _mark_distinct(
    connection: sqlite3.Connection, calls: Sequence[Call], owners: Mapping[Name, _Owner]
) -> list[Result | Exception]:
    known = [(owner, call) for call in calls if (owner := owners.get((call.tenant, call.receiver))) is not None]
    rows = _find_items(connection, known)
    notifications = _read_notifications(connection, {row.nid for row in rows})
    contents = {one.nid: _Content(one.id, one.body.encode(), one.options.encode()) for one in notifications}
    rows_of = {rid: list(some) for rid, some in groupby(rows, lambda row: row.rid)}
    marked: dict[Name, Marked] = {}
    stored: list[tuple[int, int, int, int]] = []
    for owner, call in known:
        own = rows_of.get(owner.rid, ())
        marked[owner.tenant, owner.name] = one = _change(connection, owner, call, own, contents)
        stored += [(row.rid, row.seq, item.seq, item.flags) for row, item in zip(own, one.items, strict=True)]
    _store(connection, stored, [(owner.rid, *marked[owner.tenant, owner.name].head) for owner, _ in known])
    delivered = _find_confirmed(connection, known)
    delivered += [(row.nid, row.rid) for row in rows if row.state == State.SENT]
    changes = Changes(connection, max(call.now_ms for call in calls), {one.nid: one.tenant for one in notifications})
    _deliver(connection, delivered, changes)
    marks = {owner.rid: f"item.{call.mark}" for owner, call in known}
    changes.note_all("inbox", [(row.nid, marks[row.rid], row.rid) for row in rows])
    changes.store()
    hurry_routes(connection, [*delivered, *((row.nid, row.rid) for row in rows)])
    return [marked.get((call.tenant, call.receiver)) for call in calls]


def _find_items(connection: sqlite3.Connection, known: Sequence[tuple[_Owner, Call]]) -> list[_Row]:
    """The items that the calls change, in the order of receivers and positions."""
    up_to, named, at = [], [], []
    for owner, call in known:
        flags = (call.sets, call.clears)
        if call.mark == DELIVERED:
            continue
        if call.chosen.up_to is not None:
            up_to.append((owner.rid, read_seq(call.chosen.up_to, owner.epoch), *flags))
        named += [(owner.rid, name, *flags, owner.tenant) for name in call.chosen.ids]
        at += [(owner.rid, read_seq(position, owner.epoch), *flags) for position in call.chosen.items]
    found = [
        row
        for condition, some in (("seq <= call.what", up_to), ("seq = call.what", at), (_NAMED, named))
        if some
        for row in _ROWS.decode(read_all(connection, _FIND.format(which=condition), some))
    ]
    if len(named) + len(at) > 1:  # an item named twice changes once
        found = list(dict.fromkeys(found))
    return sorted(found, key=_ORDER)


def _find_confirmed(connection: sqlite3.Connection, known: Sequence[tuple[_Owner, Call]]) -> list[Pair]:
    """The deliveries, by notification and receiver, of items that the clients say they have."""
    some = []
    for owner, call in known:
        if call.mark == DELIVERED:
            given = call.chosen.items if call.chosen.up_to is None else (call.chosen.up_to,)
            some.append((owner.rid, max((read_seq(position, owner.epoch) for position in given), default=0)))
    found = read_all(
        connection,
        f"SELECT json_group_array(json_array(delivery.nid, delivery.rid)) FROM {_CALL} "
        "CROSS JOIN item ON item.rid = call.rid AND seq <= call.what "
        f"CROSS JOIN delivery ON delivery.nid = item.nid AND delivery.rid = item.rid AND {_IS_SENT}",
        some,
    )
    return _PAIRS.decode(found)


def _read_notifications(connection: sqlite3.Connection, nids: Iterable[int]) -> list[_Notification]:
    found = read_all(
        connection,
        "SELECT json_group_array(json_array(nid, tenant, notification.id, CAST(body AS TEXT), CAST(options AS TEXT))) "
        "FROM json_each(?) AS wanted CROSS JOIN notification ON nid = wanted.value",
        sorted(nids),
    )
    return _NOTIFICATIONS.decode(found)


def _change(
    connection: sqlite3.Connection, owner: _Owner, call: Call, rows: Sequence[_Row], contents: Mapping[int, _Content]
) -> Marked:
    """The items of a receiver as the call makes them, and its head after that."""
    tenant, receiver, rid, epoch, seq, unread, unseen, _ = owner
    sets, keeps = call.sets, ~call.clears
    flags = [(row.flags | sets) & keeps for row in rows]
    for row, fresh in zip(rows, flags, strict=True):
        unread += IS_UNREAD[fresh] - IS_UNREAD[row.flags]
        unseen += IS_UNSEEN[fresh] - IS_UNSEEN[row.flags]
    head = Head(epoch, seq + len(rows), unread, unseen)
    items = []
    for row, fresh in zip(rows, flags, strict=True):
        seq += 1
        name, body, options = contents.get(row.nid, _FORGOTTEN)
        content = localize(connection, rid, row.nid, options, body) if options else body
        items.append(InboxItem(tenant, receiver, seq, head, name, fresh, row.at_ms, content, row.first))
    return Marked(tuple(items), head)


def read_seq(position: Position, epoch: int) -> int:
    """The SEQ of a position; 0, which no item has, if the position is of another epoch."""
    return position[1] if position[0] == epoch else 0


def _store(
    connection: sqlite3.Connection,
    items: Sequence[tuple[int, int, int, int]],
    heads: Sequence[tuple[int, int, int, int, int]],
) -> None:
    """Items, each with its receiver, old SEQ, new SEQ and flags; heads, each after its receiver."""
    if not items:
        return
    connection.execute(
        "UPDATE item SET seq = json_extract(value, '$[2]'), flags = json_extract(value, '$[3]') FROM json_each(?) "
        "WHERE rid = json_extract(value, '$[0]') AND seq = json_extract(value, '$[1]')",
        (pack_rows(items),),
    )
    connection.execute(
        "UPDATE head SET seq = json_extract(value, '$[2]'), unread = json_extract(value, '$[3]'), "
        "unseen = json_extract(value, '$[4]') FROM json_each(?) WHERE rid = json_extract(value, '$[0]')",
        (pack_rows(heads),),
    )


def _deliver(connection: sqlite3.Connection, sent: Sequence[Pair], changes: Changes) -> None:
    """A receiver that did something with an item has it."""
    if not sent:
        return
    connection.execute(
        f"UPDATE delivery SET state = 5 FROM {PAIR} WHERE delivery.nid = pair.nid AND delivery.rid = pair.rid AND {_IS_SENT}",
        (pack_rows(sent),),
    )
    for nid, rid in sent:
        changes.move(DeliveryKey(nid, rid, "inbox", 0), State.SENT, State.DELIVERED)
