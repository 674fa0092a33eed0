"""A dry run with the embedded store: which receivers a notification would reach on which channel, and why not the others."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ....model import Person, State, Target
from ..accept import Draft
from ..deciding import Facts, decide_all, find_category, read_targets
from ..groups import find_group
from ..receivers import find_receivers, make_profile
from .personal import find_people

LOOKED_AT_MAX = 1_000
PEOPLE_MAX = 100
"""Receivers whose content a dry run renders."""


def check_draft(
    connection: sqlite3.Connection, draft: Draft, channels: Sequence[str], now_ms: int
) -> tuple[dict[str, Any], tuple[Person, ...]] | None:
    """Counts by channel over the first receivers, and the first of them as templates know them; None: no such group."""
    found, unknown = find_receivers(connection, draft.tenant, draft.receivers)
    if draft.group is not None:
        group = find_group(connection, draft.tenant, draft.group)
        if group is None:
            return None
        left_out = set(found)
        rows = connection.execute(
            "SELECT rid FROM subscription WHERE gid = ? AND version = ? ORDER BY rid LIMIT ?",
            (*group, LOOKED_AT_MAX + len(left_out)),
        )
        found = [rid for (rid,) in rows if rid not in left_out]
    looked_at = found[:LOOKED_AT_MAX]
    category = find_category(connection, draft.tenant, draft.options.category)
    is_required = category is not None and category[0]
    facts = Facts(0, draft.tenant, draft.expires_ms, draft.priority, draft.options, is_required, False)
    steps = [step.channel for step in draft.options.steps]
    wanted = steps or ([draft.options.channel] if draft.options.channel else list(channels))
    begin_ms = max(now_ms, draft.due_ms)
    fresh = [given for given in draft.new_receivers if given[0] in unknown]
    shown = {
        channel: _count(connection, facts, channel, looked_at, begin_ms, _list_fresh(draft, fresh, channel))
        for channel in wanted
        if channel in channels
    }
    unknown = [name for name in unknown if name not in dict(fresh)]
    people = tuple(Person(0, *given) for given in draft.new_receivers)  # as they would be stored first
    if draft.options.is_personal and not people:
        people = find_people(connection, looked_at[:PEOPLE_MAX])
    return {"receivers_looked_at": len(looked_at) + len(fresh), "unknown": unknown, "channels": shown}, people


def _list_fresh(draft: Draft, fresh: Sequence[tuple[str, bytes]], channel: str) -> list[tuple[Target, bytes]]:
    """What a send would store first has an inbox, or is one address."""
    if draft.address is not None:
        return [(Target(0, 1, name, draft.address[1]), b"") for name, _ in fresh if channel == draft.address[0]]
    return [(Target(0, 0, name), make_profile(given, b"")) for name, given in fresh if channel == "inbox"]


def _count(
    connection: sqlite3.Connection,
    facts: Facts,
    channel: str,
    rids: list[int],
    now_ms: int,
    fresh: list[tuple[Target, bytes]],
) -> dict[str, int]:
    rows = [*read_targets(connection, channel, rids), *fresh]
    targets = decide_all(connection, facts, channel, rows, now_ms)
    counts: Counter[str] = Counter()
    for target in targets:
        verdict = target.verdict
        label = "send" if verdict.state is State.QUEUED else verdict.state.label
        counts[f"{label}: {verdict.reason}" if verdict.reason else label] += 1
    without = len(set(rids) - {target.rid for target in targets})
    return {**counts, "without_address": without} if without else dict(counts)
