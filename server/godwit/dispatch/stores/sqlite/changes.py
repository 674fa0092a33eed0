"""The changes of one unit of work: counts of notifications, and events with the deliveries that reached a state.

A unit collects its changes and stores them at its end, in its own transaction: counts always equal rows, and events are
exact. One event covers all deliveries of a unit that reached the same state for the same reason.
"""

from __future__ import annotations

import array
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ...model import DeliveryKey, State
from .many.rows import run_on_rows
from .tenants import count_deliveries

SMALL = 90
"""Numbers of an event that are shorter and quicker to pack without compression, at most."""
_EVENT = "INSERT INTO event (tenant, type, nid, channel, reason, time_ms, count, members)"
_PACK, _UNPACK = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(list[int]).decode
UNREPORTED = (State.QUEUED, State.SENDING)
"""States without an event."""


class Member(NamedTuple):
    """One delivery of an event, by numbers. Names are looked up when it is read, so that erased names do not appear."""

    rid: int
    aid: int
    attempt: int
    is_doubtful: bool


MemberRow = tuple[int, int, int, bool]
"""The fields of a Member, where a page makes one for each receiver: a plain tuple takes a tenth of the time."""


class Changes:
    """The changes of one unit."""

    def __init__(self, connection: sqlite3.Connection, now_ms: int, tenants: Mapping[int, str] | None = None) -> None:
        """`tenants`: the tenants of notifications that the caller knows."""
        self._connection, self.now_ms = connection, now_ms
        self._tenants = dict(tenants or {})
        self._counts: Counter[tuple[int, str, State]] = Counter()
        self._made: Counter[int] = Counter()
        self._events: dict[tuple[int, str, str, str], list[MemberRow]] = {}

    def insert(self, key: DeliveryKey, state: State, reason: str = "") -> None:
        """A delivery was inserted."""
        self._made[key.nid] += 1
        self._counts[key.nid, key.channel, state] += 1
        self._report(key, state, reason, 0, False)

    def insert_all(self, keys: Sequence[DeliveryKey], state: State, reason: str = "") -> None:
        """Deliveries of one notification and channel were inserted."""
        if not keys:
            return
        nid, channel = keys[0].nid, keys[0].channel
        self._made[nid] += len(keys)
        self._counts[nid, channel, state] += len(keys)
        if state not in UNREPORTED:
            members = self._events.setdefault((nid, channel, f"delivery.{state.label}", reason), [])
            members += [(rid, aid, 0, False) for _, rid, _, aid in keys]

    def move(
        self,
        key: DeliveryKey,
        before: State,
        after: State,
        reason: str = "",
        attempt: int = 0,
        *,
        is_doubtful: bool = False,
    ) -> None:
        """A delivery changed its state."""
        self._counts[key.nid, key.channel, before] -= 1
        self._counts[key.nid, key.channel, after] += 1
        self._report(key, after, reason, attempt, is_doubtful)

    def note(self, key: DeliveryKey, kind: str) -> None:
        """Record an event that is not a state, such as `item.read`."""
        self._events.setdefault((key.nid, key.channel, kind, ""), []).append(Member(key.rid, key.aid, 0, False))

    def note_all(self, channel: str, rows: Iterable[tuple[int, str, int]]) -> None:
        """The same for many deliveries, each by its notification, what happened, and its receiver."""
        members: dict[int, Member] = {}
        for nid, kind, rid in rows:
            member = members.get(rid) or members.setdefault(rid, Member(rid, 0, 0, False))
            self._events.setdefault((nid, channel, kind, ""), []).append(member)

    def store(self) -> None:
        """Write the counts and events."""
        add_counts(self._connection, self._counts)
        made: Counter[str] = Counter()
        for nid, count in self._made.items():
            made[self._find_tenant(nid)] += count
        for tenant, count in made.items():
            count_deliveries(self._connection, tenant, count, self.now_ms)
        run_on_rows(
            self._connection,
            _EVENT,
            [
                (self._find_tenant(nid), kind, nid, channel, reason, self.now_ms, len(members), pack_members(members))
                for (nid, channel, kind, reason), members in self._events.items()
            ],
        )

    def _find_tenant(self, nid: int) -> str:
        if nid not in self._tenants:
            row = self._connection.execute("SELECT tenant FROM notification WHERE nid = ?", (nid,)).fetchone()
            self._tenants[nid] = "" if row is None else row[0]
        return self._tenants[nid]

    def _report(self, key: DeliveryKey, state: State, reason: str, attempt: int, is_doubtful: bool) -> None:
        if state not in UNREPORTED:
            group = (key.nid, key.channel, f"delivery.{state.label}", reason)
            self._events.setdefault(group, []).append(Member(key.rid, key.aid, attempt, is_doubtful))


def add_event(
    connection: sqlite3.Connection,
    tenant: str,
    kind: str,
    nid: int,
    channel: str,
    reason: str,
    now_ms: int,
    members: list[Member],
) -> None:
    """One event row."""
    run_on_rows(connection, _EVENT, [(tenant, kind, nid, channel, reason, now_ms, len(members), pack_members(members))])


def add_counts(connection: sqlite3.Connection, counts: Mapping[tuple[int, str, State], int]) -> None:
    """Add changes to the counts of notifications."""
    run_on_rows(
        connection,
        "INSERT INTO delivery_count",
        [(nid, channel, int(state), change) for (nid, channel, state), change in counts.items() if change],
        " ON CONFLICT DO UPDATE SET count = count + excluded.count",
    )


def pack_members(members: Iterable[MemberRow]) -> bytes:
    """Members as differences of their numbers, which are close together within a page: an array in MessagePack, or compressed
    64-bit integers where there are many.
    """
    numbers: list[int] = []
    rid = aid = 0
    for at, address, attempt, is_doubtful in members:
        numbers += (at - rid, address - aid, attempt * 2 + is_doubtful)
        rid, aid = at, address
    return _PACK(numbers) if len(numbers) <= SMALL else zlib.compress(array.array("q", numbers).tobytes(), 1)


def unpack_members(packed: bytes) -> list[Member]:
    """The members of `pack_members`."""
    is_plain = packed[0] & 0x80  # an array in MessagePack; compressed data begins with a smaller byte
    numbers: Sequence[int] = _UNPACK(packed) if is_plain else array.array("q", zlib.decompress(packed))
    members = []
    rid = aid = 0
    for at in range(0, len(numbers), 3):
        rid, aid = rid + numbers[at], aid + numbers[at + 1]
        members.append(Member(rid, aid, numbers[at + 2] >> 1, bool(numbers[at + 2] & 1)))
    return members
