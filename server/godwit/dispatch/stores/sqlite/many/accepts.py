"""Accepts many notifications in one unit: the statements run for all plain ones of a tenant at once.

A plain notification goes to one existing receiver and has no content of a template. Each result equals that of accepting
one after the other. One that is refused, or fails, does not affect the others.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import groupby

import msgspec

from .....logs import read_logger
from ....codes import DispatchCode
from ....errors import RequestRefused
from ..accept import (
    INSERT,
    Accepted,
    Draft,
    accept,
    find_expiry,
    is_past,
    make_row,
    pack_numbers,
    pack_options,
    route_accepted,
)
from ..receivers import take_number
from ..tenants import judge_size, read_tenant, take_bytes
from .rows import pack_names, run_in_savepoint, run_on_rows

Given = tuple[Draft, int]
"""A draft, and the time of its request."""
_NOT_YET = Accepted("")
_RIDS = msgspec.json.Decoder(dict[str, int])


def accept_many(connection: sqlite3.Connection, given: Sequence[Given]) -> list[Accepted | Exception]:
    """The result of each, in order. Those of one tenant are accepted in this order."""
    results: list[Accepted | Exception] = [_NOT_YET] * len(given)
    order = sorted(range(len(given)), key=lambda number: given[number][0].tenant)
    for (tenant, is_plain), run in groupby(
        order, lambda number: (given[number][0].tenant, _is_plain(given[number][0]))
    ):
        numbers = list(run)
        some = [given[number] for number in numbers]
        results_of_run: Sequence[Accepted | Exception] = ()
        if is_plain and len(some) > 1:
            results_of_run = _try_plain(connection, tenant, some)
        results_of_run = results_of_run or [_accept_alone(connection, *one) for one in some]
        for number, result in zip(numbers, results_of_run, strict=True):
            results[number] = result
    return results


def accept_all(connection: sqlite3.Connection, drafts: Sequence[Draft], now_ms: int) -> list[Accepted]:
    """Accept a batch in order; a refused one does not affect the others."""
    return [
        _name_quota(draft, result)
        for draft, result in zip(drafts, accept_many(connection, [(draft, now_ms) for draft in drafts]), strict=True)
    ]


def _name_quota(draft: Draft, result: Accepted | Exception) -> Accepted:
    """A new receiver beyond the quota is refused like a notification beyond it; other errors are raised."""
    if isinstance(result, Accepted):
        return result
    if isinstance(result, RequestRefused) and result.code is DispatchCode.QUOTA_EXCEEDED:
        return Accepted(draft.id, quota=result.detail)
    raise result


def _is_plain(draft: Draft) -> bool:
    return draft.is_single and not (draft.new_receivers or draft.address or draft.rendered) and draft.group is None


def _try_plain(connection: sqlite3.Connection, tenant: str, given: Sequence[Given]) -> list[Accepted]:
    """Accept plain ones together. If one fails, none is accepted, and each is then accepted alone."""
    result = run_in_savepoint(connection, lambda: _accept_plain(connection, tenant, given))
    if not isinstance(result, Exception):
        return result
    reason = f"{type(result).__name__}: {result}"
    read_logger().warning("dispatch_accepts_taken_apart", count=len(given), reason=reason)
    return []


def _accept_plain(connection: sqlite3.Connection, tenant: str, given: Sequence[Given]) -> list[Accepted]:
    ids = pack_names(draft.id for draft, _ in given)
    names = pack_names(draft.receivers[0] for draft, _ in given)
    known: dict[str, bytes] = dict(
        connection.execute(
            "SELECT id, fingerprint FROM notification WHERE tenant = ? AND id IN (SELECT value FROM json_each(?))",
            (tenant, ids),
        ).fetchall()
    )
    (packed,) = connection.execute(
        "SELECT json_group_object(name, rid) FROM receiver WHERE tenant = ? AND name IN (SELECT value FROM json_each(?))",
        (tenant, names),
    ).fetchone()
    rids = _RIDS.decode(packed)
    found = read_tenant(connection, tenant, given[0][1])
    results: list[Accepted] = []
    rows, made, taken = [], [], 0
    for at, (draft, now_ms) in enumerate(given):
        fingerprint, name = known.get(draft.id), draft.receivers[0]
        options = pack_options(draft.options)
        size = len(draft.body) + len(options) + 8
        if fingerprint is not None:
            results.append(Accepted(draft.id, is_duplicate=True, is_conflict=fingerprint != draft.fingerprint))
        elif is_past(draft, now_ms):
            results.append(Accepted(draft.id, is_past=True))
        elif found is not None and (quota := judge_size(*found, taken + size)):
            results.append(Accepted(draft.id, quota=quota))
        elif name not in rids:
            results.append(Accepted(draft.id, unknown=(name,)))
        else:
            row, targets = make_row(draft, options, find_expiry(connection, draft), now_ms), pack_numbers((rids[name],))
            rows.append((*row, targets, 0, 0))
            made.append((at, draft, targets))
            results.append(Accepted(draft.id))
            known[draft.id], taken = draft.fingerprint, taken + size
    if rows:
        take_bytes(connection, tenant, taken)
        first = take_number(connection, len(rows)) - len(rows) + 1
        last = run_on_rows(connection, INSERT, [(*row, first + at) for at, row in enumerate(rows)])
        _route(connection, last, made, results)
    return results


def _route(
    connection: sqlite3.Connection, last: int, made: Sequence[tuple[int, Draft, bytes]], results: list[Accepted]
) -> None:
    """Route the notifications of an insert, each given with the place of its result, which names its channels then. `last` is the
    number of the last: AUTOINCREMENT makes them follow each other.
    """
    numbered = [(last - len(made) + 1 + at, draft, targets) for at, (_, draft, targets) in enumerate(made)]
    for (place, _, _), channels in zip(made, route_accepted(connection, numbered), strict=True):
        results[place] = results[place]._replace(channels=channels)


def _accept_alone(connection: sqlite3.Connection, draft: Draft, now_ms: int) -> Accepted | Exception:
    """Accept one draft; if it is refused, nothing changes."""
    return run_in_savepoint(connection, lambda: accept(connection, draft, now_ms))
