"""Reads the facts that decide about deliveries from the embedded store, and makes the verdicts.

The options of a notification are read once for a page. Receivers without preferences, zone and quiet hours have an empty
profile; a tenant without suppressions costs one query.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from ...model import ADDRESS_PREFIX, DeliveryKey, Options, Priority, Profile, State, Target, Verdict
from ...pure.locales import choose_locale
from ...pure.policy import decide
from ...pure.sandbox import is_sandbox
from .many.rows import pack_list

_NO_PROFILE = Profile()
RENDERING = "rendering"
"""The reason of a delivery that waits until its content is rendered again."""
AGAIN_MS = 1_000
"""When a delivery that waits for its content is examined again."""
_IS_BARE = f"substr(receiver.name, 1, {len(ADDRESS_PREFIX)}) = '{ADDRESS_PREFIX}'"
RECEIVER_NAME = f"iif({_IS_BARE}, NULL, receiver.name)"
"""The API's name of a delivery's receiver; a bare address has none."""
ADDRESS_NAME = f"iif(delivery.aid < 0, 'cc/' || (-1 - delivery.aid), iif({_IS_BARE}, address.value, address.name))"
"""The API's name of a delivery's address: the address's name, the value of a bare address, or for a copy its place in
`override.email.cc`.
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """A notification, with what decisions need."""

    nid: int
    tenant: str
    expires_ms: int
    priority: Priority
    options: Options
    is_required: bool
    """Whether its category ignores preferences and unsubscribes."""
    is_cancelled: bool


def read_facts(connection: sqlite3.Connection, nid: int) -> Facts | None:
    """The facts of a notification; None if it was deleted."""
    row = connection.execute(
        "SELECT tenant, expires_ms, priority, options, state FROM notification WHERE nid = ?", (nid,)
    ).fetchone()
    if row is None:
        return None
    options = read_options(bytes(row[3]))
    category = find_category(connection, row[0], options.category) if options.category else None
    is_required = category is not None and category[0]
    return Facts(nid, row[0], row[1], Priority(row[2]), options, is_required, row[4] == "cancelled")


@lru_cache(maxsize=1_000)
def read_options(packed: bytes) -> Options:
    """The options of a notification."""
    return msgspec.json.decode(packed, type=Options) if packed else Options()


@lru_cache(maxsize=10_000)
def read_profile(packed: bytes) -> Profile:
    """A receiver's profile."""
    return msgspec.json.decode(packed, type=Profile) if packed else _NO_PROFILE


def find_category(connection: sqlite3.Connection, tenant: str, name: str) -> tuple[bool, int | None] | None:
    """Whether a category is required, and its default `expires_s`."""
    row = connection.execute(
        "SELECT is_required, expires_s FROM category WHERE tenant = ? AND name = ?", (tenant, name)
    ).fetchone()
    return None if row is None else (bool(row[0]), row[1])


def decide_all(
    connection: sqlite3.Connection, facts: Facts, channel: str, rows: Iterable[tuple[Target, bytes]], now_ms: int
) -> tuple[Target, ...]:
    """Targets with their verdicts; `rows` has each target with its receiver's profile."""
    has_suppressions = channel != "inbox" and _has_suppressions(connection, facts.tenant, channel)
    plain = Verdict()
    is_alike = (
        channel == "inbox" and not facts.options.is_test
    )  # receivers differ only in quiet hours and sandbox names
    verdicts: dict[bytes, Verdict] = {}
    decided = []
    if facts.options.is_personal:
        rows = list(rows)
        failures = _read_failures(connection, facts.nid, [target.rid for target, _ in rows])
        is_alike = False
    for target, packed in rows:
        verdict = verdicts.get(packed)
        if verdict is None or facts.options.locales:
            profile = read_profile(packed) if packed else _NO_PROFILE
        if facts.options.locales:
            target = replace(target, locale=choose_locale(profile.locale, facts.options.locales))
        if verdict is None:
            suppression = _find_suppression(connection, facts, channel, target.value) if has_suppressions else ""
            verdict = decide(
                facts.options,
                profile,
                channel,
                rid=target.rid,
                now_ms=now_ms,
                expires_ms=facts.expires_ms,
                is_required=facts.is_required,
                suppression=suppression,
                is_sandbox=facts.options.is_test and is_sandbox(channel, target.value or target.receiver),
            )
            if verdict == plain:
                verdict = plain
            if is_alike:
                verdicts[packed] = verdict
        if facts.options.sender and channel == "email":
            target = replace(target, sender=facts.options.sender)
        if facts.options.is_personal:
            target = replace(target, is_personal=True)
            verdict = _judge_content(verdict, failures.get(target.rid, ("was not rendered", 0)), now_ms)
        decided.append(target if verdict is plain else replace(target, verdict=verdict))
    return tuple(decided)


def _read_failures(connection: sqlite3.Connection, nid: int, rids: Sequence[int]) -> dict[int, tuple[str, int]]:
    """The errors of rendering for each receiver (empty: there is content), and whether it is rendered again. Empty in a dry run."""
    if not nid:
        return dict.fromkeys(rids, ("", 0))
    rows = connection.execute(
        "SELECT rid, failure, is_again FROM personal WHERE nid = ? AND rid IN (SELECT value FROM json_each(?))",
        (nid, pack_list(rids)),
    )
    return {rid: (failure, is_again) for rid, failure, is_again in rows}


def _judge_content(verdict: Verdict, failure: tuple[str, int], now_ms: int) -> Verdict:
    """A delivery to send waits for its content, or fails without it."""
    if verdict.state not in (State.QUEUED, State.DEFERRED) or not failure[0]:
        return verdict
    if failure[1]:
        return Verdict(State.DEFERRED, now_ms + AGAIN_MS, RENDERING)
    return Verdict(State.FAILED, reason="content", detail=failure[0])


def read_targets(connection: sqlite3.Connection, channel: str, rids: list[int]) -> list[tuple[Target, bytes]]:
    """The active addresses of a channel that receivers have, each with the receiver's profile."""
    marks = ",".join("?" * len(rids))
    if channel == "inbox":
        rows = connection.execute(f"SELECT rid, name, profile FROM receiver WHERE rid IN ({marks}) ORDER BY rid", rids)
        return [(Target(rid, 0, name), profile) for rid, name, profile in rows]
    rows = connection.execute(
        "SELECT rid, aid, receiver.name, value, unseal(secret), unseal(format), profile FROM address JOIN receiver USING (rid) "
        f"WHERE rid IN ({marks}) AND channel = ? AND state = 'active' ORDER BY rid, aid",
        (*rids, channel),
    )
    return [(Target(*found[:6]), found[6]) for found in rows]


def find_target(connection: sqlite3.Connection, key: DeliveryKey, copies: Sequence[str]) -> tuple[Target, bytes] | None:
    """The target of one delivery with its receiver's profile; None if it was deleted. `copies` are the notification's."""
    if key.aid >= 0:
        found = read_targets(connection, key.channel, [key.rid])
        return next((pair for pair in found if pair[0].aid == key.aid), None)
    row = connection.execute(
        "SELECT receiver.name, value, profile FROM receiver JOIN address USING (rid) JOIN delivery USING (rid, channel, aid) "
        "WHERE nid = ? AND rid = ? AND channel = ? AND delivery.state IN (4, 5, 6) ORDER BY delivery.state, aid LIMIT 1",
        key[:3],
    ).fetchone()
    if row is None or -key.aid > len(copies):
        return None
    return Target(key.rid, key.aid, row[0], copies[-key.aid - 1], copy_of=row[1]), row[2]


def _has_suppressions(connection: sqlite3.Connection, tenant: str, channel: str) -> bool:
    row = connection.execute(
        "SELECT 1 FROM suppression WHERE tenant = ? AND channel = ? LIMIT 1", (tenant, channel)
    ).fetchone()
    return row is not None


def _find_suppression(connection: sqlite3.Connection, facts: Facts, channel: str, value: str) -> str:
    """Why an address receives nothing. For a required category only a suppression of everything counts."""
    categories = ("*",) if facts.is_required else ("*", facts.options.category)
    row = connection.execute(
        "SELECT reason FROM suppression WHERE tenant = ? AND channel = ? AND value = ? AND category IN (?, ?)",
        (facts.tenant, channel, digest_value(channel, value), categories[0], categories[-1]),
    ).fetchone()
    return "" if row is None else str(row[0])


def digest_value(channel: str, value: str) -> str:
    """The digest of an address for lists that are kept after its receiver was deleted, so that no file has an erased address."""
    plain = value.lower() if channel == "email" else value
    return hashlib.sha256(f"{channel}\0{plain}".encode()).hexdigest()
