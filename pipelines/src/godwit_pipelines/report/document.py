"""The report as data: everything that the page shows. Pure, except that Tables reads."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .tables import Row, Tables

Document = dict[str, Any]
STEPS = (1, 2, 5, 10, 30, 60, 300, 600, 1_800, 3_600)
POINTS_MAX = 240
SHOWN = 15
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def build_document(folder: Path, now: datetime, hours: float = 24.0) -> Document:
    """The report's data: what the tables in `folder` contain about the `hours` before `now`."""
    tables = Tables(folder, now - timedelta(hours=hours), now + timedelta(minutes=1))
    first, last = tables.newest()
    begin, end = first or tables.since, last or now
    span_s = max(1.0, (end - begin).total_seconds())
    step_s = next((step for step in STEPS if span_s / step <= POINTS_MAX), STEPS[-1])
    windows = (
        tables.rows("gold.delivery_10s", "window_start")
        if span_s < 7_200
        else tables.rows("gold.delivery_1m", "window_start")
    )
    width_s = 10 if span_s < 7_200 else 60
    verdict = tables.rows("gold.audit_verdict", "hour")
    if not verdict and first is not None:  # the hour may have begun before the report's time
        verdict = Tables(folder, begin.replace(minute=0, second=0, microsecond=0), tables.until).rows(
            "gold.audit_verdict", "hour"
        )
    faults = tables.rows("gold.audit_faults", "time")
    sessions = tables.rows("silver.sessions", "started")
    audit = _audit(verdict, faults)
    usage = Tables(folder, begin - timedelta(hours=1), tables.until).rows("gold.usage_1h", "hour")
    return {
        "made": now.replace(microsecond=0).isoformat(),
        "from": begin.isoformat(),
        "until": end.isoformat(),
        "empty": first is None,
        "nodes": sorted({row["node"] for row in [*windows, *verdict, *sessions]}),
        "step_s": step_s,
        "width_s": width_s,
        "audit": audit,
        "audited": None if audit["ranges"] else _last_audited(folder, begin),
        "reported": _reported(windows, audit),
        "published": _without_holes(tables.count_over_time("bronze.messages", step_s), step_s),
        "delivered": _sum_over_time(windows, "messages"),
        "latency": _latency(windows),
        "faults_over_time": _faults_over_time(windows, faults, width_s),
        "connected": _connected(sessions, end),
        "moves": _moves(sessions, width_s),
        "sessions": _sessions(sessions),
        "selectors": _selectors(windows),
        "tenants": _tenants(usage),
        "worst": _worst(faults),
    }


def _last_audited(folder: Path, until: datetime) -> str | None:
    """The last hour of before that was audited."""
    hours = [row["hour"] for row in Tables(folder, _LONG_AGO, until).rows("gold.audit_verdict", "hour", ["hour"])]
    return max(hours).isoformat() if hours else None


def _audit(verdict: list[Row], faults: list[Row]) -> Row:
    names = (
        "ranges",
        "messages",
        "conflated",
        "gaps",
        "holes",
        "repeats",
        "reorders",
        "regressions",
        "others",
        "reported",
        "excused",
        "faults",
    )
    # a column may be younger than a table
    sums: Row = {name: sum(row.get(name) or 0 for row in verdict) for name in names}
    early = [row for row in faults if _is_early(row)]
    sums["not_landed"] = sum(row["messages"] for row in early if row["cause"] == "not landed yet")
    sums["unwritten"] = sum(row["messages"] for row in early) - sums["not_landed"]
    sums["reported_gaps"] = sum(row["cause"] == "reported" for row in faults)
    sums["hours"] = len({row["hour"] for row in verdict})
    by_selector: dict[str, Row] = {}
    for row in verdict:
        one = by_selector.setdefault(
            row["selector"],
            {"selector": row["selector"], **dict.fromkeys(("messages", "reported", "faults", "ranges"), 0)},
        )
        for name in ("messages", "reported", "faults", "ranges"):
            one[name] += row[name]
    sums["selectors"] = len(by_selector)
    sums["unproven"] = sum(row["verdict"] == "unproven" for row in verdict)
    states = {
        "broken": sums["faults"],
        "unproven": sums["unproven"],
        "reported": sums["reported"] + sums["excused"],
        "proven": True,
    }
    sums["state"] = "none" if not sums["ranges"] else next(state for state, is_it in states.items() if is_it)
    worst = sorted(by_selector.values(), key=lambda row: (-row["faults"], -row["reported"], -row["messages"]))
    return {**sums, "by_selector": worst[:SHOWN]}


def _reported(windows: list[Row], audit: Row) -> Row:
    """The missing messages that clients received gaps for, including times before their connection, which the audit does not
    know; if deliveries are not summed up, the audit's counts.
    """
    gaps, messages = (sum(row[name] for row in windows) for name in ("gaps", "missed"))
    return {"gaps": max(gaps, audit["reported_gaps"]), "messages": max(messages, audit["reported"])}


def _is_early(fault: Row) -> bool:
    """Whether its messages were handed over before they were known to be published, and the journal excuses it: none is missing."""
    return bool(fault["declared"] and fault["kind"] == "unpublished")


def _without_holes(counts: dict[int, int], step_s: int) -> list[tuple[int, int]]:
    """The counts with a zero for each step in which nothing happened: a line would pass over it."""
    return [(at, counts.get(at, 0)) for at in range(min(counts), max(counts) + step_s, step_s)] if counts else []


def _sum_over_time(windows: list[Row], name: str) -> list[tuple[int, int]]:
    sums: dict[int, int] = defaultdict(int)
    for row in windows:
        sums[_unix(row["window_start"])] += row[name]
    return sorted(sums.items())


def _latency(windows: list[Row]) -> list[tuple[int, float, float, float]]:
    """p50, p95 and p99 in milliseconds for each window in which something was timed, over all selectors."""
    merged: dict[int, list[int]] = {}
    for row in windows:
        if row["timed"]:
            known = merged.setdefault(_unix(row["window_start"]), [0] * len(row["buckets"]))
            merged[_unix(row["window_start"])] = [a + b for a, b in zip(known, row["buckets"], strict=True)]
    return [
        (at, read_quantile(each, 0.5) / 1_000, read_quantile(each, 0.95) / 1_000, read_quantile(each, 0.99) / 1_000)
        for at, each in sorted(merged.items())
    ]


def read_quantile(buckets: list[int], q: float) -> float:
    """The q-quantile of a histogram of the journal, microseconds, linear within its bucket."""
    wanted, through = q * sum(buckets), 0
    for at, count in enumerate(buckets):
        if count and through + count >= wanted:
            low = 2.0 ** (at - 1) if at else 0.0
            return low + (2.0**at - low) * (wanted - through) / count
        through += count
    return 0.0


def _faults_over_time(windows: list[Row], faults: list[Row], width_s: int) -> list[tuple[int, int, int]]:
    """Messages reported as missing, and undeclared faults, by window."""
    reported, found, wrong = (
        dict(_sum_over_time(windows, "missed")),
        defaultdict[int, int](int),
        defaultdict[int, int](int),
    )
    for row in faults:
        at = _unix(row["time"]) // width_s * width_s
        if row["cause"] == "reported" or not row["declared"]:
            (found if row["declared"] else wrong)[at] += row["messages"]
    times = sorted(at for at in {*reported, *found, *wrong} if reported.get(at) or found[at] or wrong[at])
    return [(at, max(reported.get(at, 0), found[at]), wrong[at]) for at in times]


def _connected(sessions: list[Row], end: datetime) -> list[tuple[int, int]]:
    """How many were connected, wherever that changed, to the second."""
    moves: dict[int, int] = defaultdict(int)
    for row in sessions:
        moves[_unix(row["started"])] += 1
        if row["ended"] is not None:
            moves[_unix(row["ended"])] -= 1
    level, levels = 0, []
    for at in sorted(moves):
        level += moves[at]
        levels.append((at, level))
    return [*levels, (max(_unix(end), levels[-1][0]), level)] if levels else []


def _moves(sessions: list[Row], width_s: int) -> list[tuple[int, int, int]]:
    """Connections that began, and that ended, by window."""
    came: dict[int, int] = defaultdict(int)
    went: dict[int, int] = defaultdict(int)
    for row in sessions:
        came[_unix(row["started"]) // width_s * width_s] += 1
        if row["ended"] is not None:
            went[_unix(row["ended"]) // width_s * width_s] += 1
    return [(at, came[at], went[at]) for at in sorted({*came, *went})]


def _sessions(sessions: list[Row]) -> Row:
    how: dict[str, int] = defaultdict(int)
    protocols: dict[str, int] = defaultdict(int)
    for row in sessions:
        how[row["end_state"]] += 1
        protocols[row["protocol"] or "unknown"] += 1
    lived = sorted((row["ended"] - row["started"]).total_seconds() for row in sessions if row["ended"] is not None)
    return {
        "count": len(sessions),
        "resumed": sum(row["resumed"] for row in sessions),
        "end_state": dict(how),
        "protocols": dict(sorted(protocols.items(), key=lambda pair: -pair[1])),
        "median_s": lived[len(lived) // 2] if lived else None,
    }


def _selectors(windows: list[Row]) -> list[Row]:
    found: dict[str, Row] = {}
    for row in windows:
        one = found.setdefault(
            row["selector"],
            {"selector": row["selector"], "messages": 0, "bytes": 0, "missed": 0, "buckets": [0] * len(row["buckets"])},
        )
        for name in ("messages", "bytes", "missed"):
            one[name] += row[name]
        one["buckets"] = [a + b for a, b in zip(one["buckets"], row["buckets"], strict=True)]
    top = sorted(found.values(), key=lambda row: -row["messages"])[:SHOWN]
    return [
        {**row, "p99_ms": read_quantile(row["buckets"], 0.99) / 1_000 if any(row["buckets"]) else None, "buckets": None}
        for row in top
    ]


def _tenants(usage: list[Row]) -> list[Row]:
    names = ("in_messages", "in_bytes", "out_messages", "out_bytes", "connects", "refusals")
    found: dict[str, Row] = {}
    for row in usage:
        one = found.setdefault(row["tenant"], {"tenant": row["tenant"], **dict.fromkeys(names, 0)})
        for name in names:
            one[name] += row[name]
    return sorted(found.values(), key=lambda row: -row["out_bytes"])[:SHOWN]


def _worst(faults: list[Row]) -> list[Row]:
    """The first undeclared faults, in words."""
    wrong = sorted((row for row in faults if not row["declared"]), key=lambda row: row["time"])[:SHOWN]
    keys = (
        "kind",
        "messages",
        "selector",
        "connection",
        "place_before",
        "from_place",
        "to_place",
        "journal_offset",
        "run",
        "node",
    )
    return [{**{key: row[key] for key in keys}, "time": row["time"].astimezone(UTC).isoformat()} for row in wrong]


def _unix(time: datetime) -> int:
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())
