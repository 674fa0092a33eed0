"""Single deliveries in the embedded store: listed with filters, shown by their ids, and sent again."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ....model import DeliveryKey, State
from ....pure.delivery_ids import DeliveryId, parse_delivery_id
from ..changes import Changes
from ..deciding import ADDRESS_NAME, RECEIVER_NAME
from .personal import ask_again

LOOKED_AT_MAX = 20_000
"""How many deliveries one page examines; a filter may select few of them."""
AGAIN = (State.DEFERRED, State.FAILED, State.UNKNOWN)
"""States from which a delivery can be sent again."""
_COLUMNS = (
    "delivery.nid, delivery.rid, delivery.aid, (SELECT accepted_ms FROM notification AS own WHERE own.nid = delivery.nid), "
    f"{RECEIVER_NAME}, delivery.channel, {ADDRESS_NAME}, delivery.state, attempt, doubt, "
    "delivery.reason, ref"
)
_NAMES = "LEFT JOIN receiver USING (rid) LEFT JOIN address USING (aid)"


class DeliveryRow(NamedTuple):
    """One delivery, in the API's form. The id of a webhook's delivery is its `webhook-id`."""

    id: str
    receiver: str | None
    channel: str
    address: str | None
    state: str
    attempt: int
    possible_duplicate: bool
    reason: str
    ref: str


class Wanted(NamedTuple):
    """The filter for listed deliveries; None: all."""

    channel: str | None = None
    state: State | None = None


def read_deliveries(
    connection: sqlite3.Connection, tenant: str, name: str, wanted: Wanted, after: int, limit: int
) -> tuple[list[DeliveryRow], int | None] | None:
    """Deliveries of the receivers after number `after`, and the number after which the next page begins. None: no such notification."""
    row = connection.execute("SELECT nid FROM notification WHERE tenant = ? AND id = ?", (tenant, name)).fetchone()
    if row is None:
        return None
    looked = connection.execute(
        "SELECT rid FROM delivery WHERE nid = ? AND rid > ? ORDER BY rid LIMIT 1 OFFSET ?",
        (row[0], after, LOOKED_AT_MAX),
    ).fetchone()
    end = (
        2**62 if looked is None else max(looked[0], after + 2)
    )  # whole receivers only: the cursor is a receiver's number
    state = None if wanted.state is None else int(wanted.state)
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM delivery {_NAMES} WHERE nid = ?1 AND delivery.rid > ?2 AND delivery.rid < ?3 "
        "AND (?4 IS NULL OR delivery.channel = ?4) AND (?5 IS NULL OR delivery.state = ?5) "
        "ORDER BY delivery.rid, delivery.channel, delivery.aid LIMIT ?6",
        (row[0], after, end, wanted.channel, state, limit + 1),
    ).fetchall()
    following = None if looked is None else end - 1
    if len(rows) > limit:
        last = rows[limit][1]
        whole = [found for found in rows[:limit] if found[1] < last]
        rows, following = (whole, whole[-1][1]) if whole else (rows, last)
    return [_show(found) for found in rows], following


def find_delivery(
    connection: sqlite3.Connection, tenant: str, name: str
) -> tuple[DeliveryKey, DeliveryRow, str] | None:
    """A tenant's delivery by its id, with its notification; None if it does not exist."""
    if (wanted := parse_delivery_id(name)) is None:
        return None
    row = connection.execute(
        f"SELECT {_COLUMNS}, notification.id FROM delivery JOIN notification USING (nid) {_NAMES} "
        "WHERE nid = ? AND delivery.rid = ? AND delivery.aid = ? AND accepted_ms = ? AND notification.tenant = ?",
        (*wanted, tenant),
    ).fetchone()
    return None if row is None else (DeliveryKey(row[0], row[1], row[5], row[2]), _show(row[:-1]), row[-1])


def retry(connection: sqlite3.Connection, key: DeliveryKey, now_ms: int, expires_ms: int) -> bool:
    """Send a delivery again now, and extend its notification until `expires_ms`; false if it cannot be sent again."""
    row = connection.execute(
        "SELECT delivery.state, notification.state FROM delivery JOIN notification USING (nid) "
        "WHERE nid = ? AND rid = ? AND channel = ? AND aid = ?",
        key,
    ).fetchone()
    if row is None or State(row[0]) not in AGAIN or row[1] == "cancelled":
        return False
    ask_again(connection, key)
    connection.execute(
        "UPDATE delivery SET state = 2, due_ms = ?, reason = '', doubt = doubt OR state = 7 "
        "WHERE nid = ? AND rid = ? AND channel = ? AND aid = ?",
        (now_ms, *key),
    )
    if State(row[0]) is not State.DEFERRED:
        connection.execute(
            "UPDATE notification SET expires_ms = max(expires_ms, ?), state = 'routed' WHERE nid = ?",
            (expires_ms, key.nid),
        )
        changes = Changes(connection, now_ms)
        changes.move(key, State(row[0]), State.DEFERRED, "replay")
        changes.store()
    return True


def _show(row: tuple[int, int, int, int, str | None, str, str | None, int, int, int, str, str]) -> DeliveryRow:
    nid, rid, aid, accepted_ms, receiver, channel, address, state, attempt, doubt, reason, ref = row
    name = str(DeliveryId(nid, rid, aid, accepted_ms))
    return DeliveryRow(name, receiver, channel, address, State(state).label, attempt, bool(doubt), reason, ref)
