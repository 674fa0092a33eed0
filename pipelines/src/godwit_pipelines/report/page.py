"""The report as one page: the verdict in a sentence, then charts, then tables of clients and subjects.

Pure, except that it reads its own style sheet. The page fetches nothing and runs no script.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

from ..words import counted
from .charts import Chart, Series

STYLE = Path(__file__).with_name("page.css")
NAMES = {"proven": "PROVEN", "reported": "PROVEN", "unproven": "UNPROVEN", "broken": "BROKEN", "none": "NOTHING YET"}
FAULT_SENTENCES = {
    "gap": "missing between two ranges, not reported to the client",
    "hole": "missing inside a range, not reported to the client",
    "repeat": "delivered twice",
    "reorder": "delivered out of order",
    "epoch_regress": "from an earlier epoch",
    "miscount": "reported missing, but were not",
    "unpublished": "delivered, but never published",
}


def build_page(document: dict[str, Any]) -> str:
    """The page as HTML, from the data of `build_document`."""
    name = NAMES[document["audit"]["state"]]
    parts = [
        _verdict(document, name),
        _tiles(document),
        _worst(document),
        "<h2>Over time</h2>",
        _charts(document),
        "<h2>By subject and pattern</h2>",
        _selectors(document),
        '<div class="pair"><section><h2>The audit</h2>',
        _audit(document),
        "</section><section><h2>Connections</h2>",
        _sessions(document),
        "</section></div>",
        "<h2>Usage by tenant</h2>",
        _tenants(document),
        _footer(document),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}: what was delivered, {_span(document)}</title><style>{STYLE.read_text('utf-8')}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _span(document: dict[str, Any]) -> str:
    begin, end = (datetime.fromisoformat(document[key]).astimezone(UTC) for key in ("from", "until"))
    return (
        f"{begin:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC"
        if begin.date() == end.date()
        else f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC"
    )


def hour_of(time: str) -> str:
    return f"{datetime.fromisoformat(time).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _sentence(audit: dict[str, Any], reported: dict[str, Any], audited: str | None) -> str:
    if audit["state"] == "none" and audited:
        return f"No delivery of this time has been audited; the last audited hour is {hour_of(audited)}. Look further back with --hours."
    if audit["state"] == "none":
        return "No delivery has been audited in this time. Run land, then audit, then make the report again."
    verb = "was" if audit["messages"] == 1 else "were"
    carried = f"{counted(audit['messages'], 'message')} {verb} delivered in {counted(audit['ranges'], 'range')} "
    carried += f"of {counted(audit['selectors'], 'subject or pattern', 'subjects and patterns')}"
    if audit["state"] == "broken":
        return f"{carried}. {_times(audit['faults'])} a fault was not reported to the client; the first are below."
    excused = ""
    if audit["excused"]:
        excused = f" {audit['excused']:,} cannot be judged, because the journal lost rows there."
    if audit["state"] == "unproven":
        sentence = f"{carried}: no fault shows, but {counted(audit['unproven'], 'hour')} of these may concern messages "
        sentence += f"that were erased or never landed.{excused}"
    elif excused:
        sentence = f"{carried}.{excused} All others were delivered in order, once, and none was lost without a gap."
    else:
        sentence = f"{carried}: all in order, once, and none was lost without a gap."
    if reported["messages"]:
        missed = counted(reported["messages"], "message")
        sentence += f" {missed} could not be delivered, and each client that missed one received a gap."
    if audit["not_landed"]:
        sentence += f" Delivered, but not landed yet: {audit['not_landed']:,}; the next audit judges them."
    if audit["unwritten"]:
        sentence += f" Delivered before they were on the disk of a run that crashed: {audit['unwritten']:,}."
    return sentence


def _verdict(document: dict[str, Any], name: str) -> str:
    audit = document["audit"]
    kind = {"broken": "broken", "none": "nothing", "unproven": "nothing"}.get(audit["state"], "")
    nodes = ", ".join(document["nodes"][:4]) + (
        f" and {len(document['nodes']) - 4} more" if len(document["nodes"]) > 4 else ""
    )
    sentence = _sentence(audit, document["reported"], document["audited"])
    return (
        f"<h1>What was delivered: {escape(nodes) or 'no node'}, {_span(document)}</h1>"
        f'<section class="verdict {kind}"><b>{name}</b><p>{escape(sentence)}</p></section>'
    )


def _tiles(document: dict[str, Any]) -> str:
    audit, reported, sessions = document["audit"], document["reported"], document["sessions"]
    peak = max((level for _, level in document["connected"]), default=0)
    p99 = max((point[3] for point in document["latency"]), default=None)
    tiles = [
        (f"{sum(count for _, count in document['published']):,}", "messages published"),
        (f"{audit['messages']:,}", "deliveries judged"),
        (f"{reported['gaps']:,}", f"gaps reported, with {counted(reported['messages'], 'message')}"),
        (f"{audit['faults']:,}", "undeclared faults"),
        (f"{sessions['count']:,}", f"connections, {sessions['resumed']:,} resumed"),
        (f"{peak:,}", "connected at most"),
        (_ms(p99), "p99 at its worst, acceptance to kernel"),
    ]
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile"><b>{a}</b><span>{b}</span></div>' for a, b in tiles)
        + "</div>"
    )


def _charts(document: dict[str, Any]) -> str:
    begin, end = (datetime.fromisoformat(document[key]).timestamp() for key in ("from", "until"))
    step, width = document["step_s"], document["width_s"]
    published = [(at, count / step) for at, count in document["published"]]
    delivered = [(at, count / width) for at, count in document["delivered"]]
    latency, faults = document["latency"], document["faults_over_time"]
    charts = [
        Chart("Published", "messages a second", begin, end, [Series("published", "up", published, "area")]),
        Chart(
            "Delivered",
            "messages a second, all subscribers",
            begin,
            end,
            [Series("delivered", "up", delivered, "bar", width)],
        ),
        Chart(
            *("Latency", "acceptance to kernel", begin, end),
            [
                Series(name, kind, [(at[0] + width / 2, at[n]) for at in latency], join_s=2.5 * width)
                for n, name, kind in ((1, "p50", "up"), (2, "p95", "warn"), (3, "p99", "bad"))
            ],
            is_log=True,
            write=_ms,
        ),
        Chart(
            *("Missing and wrong", f"messages in {width} s", begin, end),
            [
                Series("reported missing", "warn", [(at, reported) for at, reported, _ in faults], "bar", width),
                Series("undeclared", "bad", [(at, wrong) for at, _, wrong in faults], "bar", width),
            ],
        ),
        Chart("Connected", "clients", begin, end, [Series("connected", "up", document["connected"], "step")]),
        Chart(
            *("Connects and disconnects", f"connections in {width} s", begin, end),
            [
                Series("connects", "up", [(at, came) for at, came, _ in document["moves"]], "bar", width / 2),
                Series(
                    "disconnects",
                    "warn",
                    [(at + width / 2, went) for at, _, went in document["moves"]],
                    "bar",
                    width / 2,
                ),
            ],
        ),
    ]
    return f'<div class="charts">{"".join(chart.draw() for chart in charts)}</div>'


def _table(heads: tuple[tuple[str, str], ...], rows: Sequence[tuple[str, ...]], empty: str) -> str:
    """`heads` are names with a class each; cells are safe HTML. On a phone, a table of many columns becomes lines, each with its name."""
    if not rows:
        return f'<p class="none">{empty}</p>'
    head = "".join(f'<th scope="col" class="{kind}">{name}</th>' for name, kind in heads)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}" data-name="{name}">{cell}</td>' for cell, (name, kind) in zip(row, heads, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    many = ' class="many"' if len(heads) > 2 else ""
    return f'<div class="scroll" tabindex="0"><table{many}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _selectors(document: dict[str, Any]) -> str:
    most = max((row["messages"] for row in document["selectors"]), default=1) or 1
    rows = [
        (
            escape(row["selector"]),
            f'<span class="share"><i style="width:{100 * row["messages"] / most:.1f}%"></i></span>',
            *(f"{row['messages']:,}", _bytes(row["bytes"]), f"{row['missed']:,}", _ms(row["p99_ms"])),
        )
        for row in document["selectors"]
    ]
    heads = (
        ("subject or pattern", "name"),
        ("share", "wide"),
        *((name, "number") for name in ("delivered", "bytes", "reported missing", "p99")),
    )
    return _table(heads, rows, "Nothing was delivered in this time.")


def _audit(document: dict[str, Any]) -> str:
    audit = document["audit"]
    rows = [
        (
            sentence,
            f'<span class="{"kept" if not audit[name] else "broken"}">{"✓ none" if not audit[name] else f"✗ {audit[name]:,}"}</span>',
        )
        for name, sentence in (
            ("gaps", "messages missing between ranges, not reported"),
            ("holes", "messages missing inside ranges, not reported"),
            ("repeats", "messages delivered twice"),
            ("reorders", "messages out of order"),
            ("regressions", "returns to an earlier epoch"),
            ("others", "wrong gap counts, unpublished positions"),
        )
    ]
    return _table((("check", ""), ("found", "number")), rows if audit["state"] != "none" else [], "Not audited yet.")


def _sessions(document: dict[str, Any]) -> str:
    sessions = document["sessions"]
    rows = [
        (f"ended: {escape(how)}" if how != "open" else "still open", f"{count:,}")
        for how, count in sorted(sessions["end_state"].items())
    ]
    rows += [(f"by {escape(protocol)}", f"{count:,}") for protocol, count in sessions["protocols"].items()]
    if sessions["median_s"] is not None:
        rows.append(("median duration", f"{sessions['median_s']:,.1f} s"))
    return _table((("connections", ""), ("how many", "number")), rows, "No connections in this time.")


def _tenants(document: dict[str, Any]) -> str:
    rows = [
        (
            escape(row["tenant"]) or "<em>no tenant</em>",
            *(f"{row['in_messages']:,}", _bytes(row["in_bytes"]), f"{row['out_messages']:,}", _bytes(row["out_bytes"])),
            *(f"{row['connects']:,}", f"{row['refusals']:,}"),
        )
        for row in document["tenants"]
    ]
    names = ("published", "bytes in", "delivered", "bytes out", "connections", "refused")
    return _table((("tenant", "name"), *((name, "number") for name in names)), rows, "No usage in this time.")


def _worst(document: dict[str, Any]) -> str:
    if not document["worst"]:
        return ""
    rows = [
        (
            f'<span class="broken">{escape(row["kind"])}</span>',
            f"{counted(row['messages'], 'message')}: {escape(FAULT_SENTENCES[row['kind']])}",
            escape(row["selector"]),
            f"{'shared subscription' if row['connection'] < 0 else 'connection'} {abs(row['connection'])} of {escape(row['node'])}",
            f"{row['from_place']} to {row['to_place']}, after {_place(row['place_before'])}",
            escape(row["time"][11:23]),
        )
        for row in document["worst"]
    ]
    heads = tuple((name, "") for name in ("fault", "meaning", "selector", "connection", "positions", "time, UTC"))
    return f"<h2>First faults</h2>{_table(heads, rows, '')}"


def _times(count: int) -> str:
    return {1: "Once", 2: "Twice"}.get(count, f"{count:,} times")


def _place(place: int | None) -> str:
    return "its beginning" if place is None else str(place)


NOTE = (
    "Times are UTC. Percentiles are read from merged histograms in powers of two and are at most a factor of two off. "
    "Delivered means: passed to the kernel. The audit compares what the node recorded as accepted with what it recorded "
    "as delivered."
)


def _footer(document: dict[str, Any]) -> str:
    made = f"Made {escape(document['made'])} by <code>godwit-pipelines report</code> from the tables of the lake only."
    return f"<footer><p>{made} {NOTE}</p></footer>"


def _ms(value: float | None) -> str:
    if value is None:
        return "–"
    value = float(f"{value:.3g}")  # a value that is rounded up to the next unit is shown in that unit
    if value >= 1_000:
        return f"{value / 1_000:,.0f} s" if value >= 100_000 else f"{value / 1_000:.3g} s"
    return f"{value:.3g} ms" if value >= 1 else f"{value * 1_000:.3g} µs"


def _bytes(count: int) -> str:
    size, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if size < 1_000 or unit == "TB":
            break
        size /= 1_000
    return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
