"""The report as one page: the verdict first, then the guarantees, the timeline, what each kind received, and the violations.
Pure, except that it reads its style sheet. The page loads no other file and has no script.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from ...words import counted
from .timeline import Timeline

STYLE = Path(__file__).with_name("page.css")
FINDINGS_SHOWN = 12
SHORT_S = 120  # the duration of a run is in seconds up to here
LEGEND = (
    ("var(--up)", "connected"),
    ("var(--away)", "not connected"),
    ("var(--stall)", "made to stop reading"),
    ("var(--warn)", "received a gap, with its count"),
    ("var(--bad)", "a violation of a guarantee; dashed lines are restarts of the node"),
)
KIND_COLUMNS = (
    ("subscribers", "clients"),
    ("messages", "messages"),
    ("losses", "connections lost"),
    ("resumes", "resumes"),
    ("again", "repeated after a resume token"),
    ("gaps", "gaps"),
    ("missed", "messages missed in gaps"),
    ("snapshots", "snapshots"),
    ("conflated", "conflated"),
)


def build_page(document: dict[str, Any]) -> str:
    """The whole page."""
    name = "PASSED" if document["verdict"] == "passed" else "BROKEN"
    parts = [
        _verdict(document, name),
        _tiles(document),
        "<h2>Guarantees</h2>",
        _guarantees(document),
        _findings(document),
        "<h2>Timeline: faults and clients</h2>",
        _legend(),
        f'<div class="scroll">{Timeline(document).draw()}</div>',
        "<h2>By kind of subscriber</h2>",
        _kinds(document),
        _fault_kinds(document),
        _footer(document),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}: godwit verify, seed {document['seed']}</title><style>{STYLE.read_text('utf-8')}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _verdict(document: dict[str, Any], name: str) -> str:
    broken = document["verdict"] != "passed"
    found = _say_violations(document) if broken else _say_kept(document)
    seconds = document["ended_ms"] / 1000
    lasted = f"{seconds:.0f} seconds" if seconds < SHORT_S else f"{seconds / 60:.1f} minutes"
    return (
        f"<h1>Proof of delivery: {escape(str(document['broker']))}, {lasted}, seed {document['seed']}</h1>"
        f'<section class="verdict {"broken" if broken else ""}"><b>{name}</b><p>{_say_run(document)} {found}</p></section>'
    )


def _say_run(document: dict[str, Any]) -> str:
    counts, faults = document["counts"], sum(document["fault_kinds"].values())
    passed = (
        f"{counts['acknowledged']:,} messages were acknowledged and {counts['messages']:,} were delivered to "
        f"{counted(counts['subscribers'], 'subscriber')}"
    )
    if not faults:
        return f"{passed}, without faults."
    fell = f" and restarted the node {counted(counts['restarts'], 'time')}" if counts["restarts"] else ""
    return f"{passed}, while {counted(faults, 'fault')} broke {counted(counts['losses'], 'connection')}{fell}."


def _say_violations(document: dict[str, Any]) -> str:
    total = counted(document["counts"]["violations"], "time")
    return f"A guarantee was broken {total}; the shortest history that shows it is below."


def _say_kept(document: dict[str, Any]) -> str:
    """The guarantees that held, and those that were not judged."""
    gaps = document["counts"]["gaps"]
    words = {
        "no loss": "no message was lost without a gap",
        "no repeat": "nothing was delivered twice",
        "order": "everything arrived in order",
        "gaps": f"each of the {gaps:,} gaps had a cause and the right count" if gaps > 1 else "every gap had a cause",
    }
    kept = [
        words[one["guarantee"]]
        for one in document["guarantees"]
        if one["state"] == "kept" and one["guarantee"] in words
    ]
    unjudged = [one["guarantee"] for one in document["guarantees"] if one["state"] == "not guaranteed"]
    said = ", ".join(kept[:-1]) + " and " + kept[-1] if len(kept) > 1 else "".join(kept)
    said = f"{said[:1].upper()}{said[1:]}." if said else ""
    if unjudged:
        said += f" Not judged, because {document['broker']} does not guarantee it: {', '.join(unjudged)}."
    return escape(said.strip())


def _tiles(document: dict[str, Any]) -> str:
    counts, memory = document["counts"], document["memory"]
    tiles = [
        (f"{counts['acknowledged']:,}", "publishes acknowledged"),
        (f"{counts['messages']:,}", "deliveries judged"),
        (f"{counts['merges_judged']:,}", "merged values judged"),
        (f"{sum(document['fault_kinds'].values()):,}", "faults"),
        (f"{counts['losses']:,}", "connections lost"),
        (f"{counts['restarts']:,}", "restarts of the node"),
        (f"{counts['gaps']:,}", f"gaps, {counts['missed']:,} messages missed"),
        (f"{counts['violations']:,}", "violations"),
    ]
    if memory:
        tiles.append((f"{memory['peak_mb']:.0f} MB", f"highest memory; limit {memory['limit_mb']:.0f} MB"))
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile"><b>{a}</b><span>{b}</span></div>' for a, b in tiles)
        + "</div>"
    )


def _guarantees(document: dict[str, Any]) -> str:
    signs = {"kept": "✓ kept", "broken": "✗ broken"}
    rows = "".join(
        f"<tr><td>{escape(one['guarantee'])}</td>"
        f'<td class="{one["state"] if one["state"] in signs else "other"}">{signs.get(one["state"], one["state"])}</td>'
        f"<td>{escape(one['sentence'])}</td></tr>"
        for one in document["guarantees"]
    )
    return f'<table class="guarantees"><tr><th>guarantee</th><th>verdict</th><th>meaning</th></tr>{rows}</table>'


def _findings(document: dict[str, Any]) -> str:
    shortest = document["shortest"]
    if shortest is None:
        return ""
    others = [finding for finding in document["findings"] if finding != shortest][: FINDINGS_SHOWN - 1]
    shown = _finding(shortest) + "".join(map(_finding, others))
    left = document["counts"]["violations"] - 1 - len(others)
    more = f"<p>{left:,} more are not shown; the JSON report has the first of them.</p>" if left > 0 else ""
    return f"<h2>Violations, the shortest history first</h2>{shown}{more}"


def _finding(finding: dict[str, Any]) -> str:
    where = f" on {escape(finding['subject'])}" if finding["subject"] else ""
    history = escape("\n".join(finding["history"]))
    return (
        f'<p><span class="broken">{escape(finding["guarantee"])}</span>: {escape(finding["who"])}{where} at '
        f"{finding['at_ms'] / 1000:.1f} s. {escape(finding['sentence'])}</p>"
        + (f"<pre>{history}</pre>" if history else "")
    )


def _legend() -> str:
    return '<p class="legend">' + "".join(f'<span><i style="background:{c}"></i>{t}</span>' for c, t in LEGEND) + "</p>"


def _kinds(document: dict[str, Any]) -> str:
    head = "".join(f'<th class="number">{label}</th>' for _, label in KIND_COLUMNS)
    rows = "".join(
        f"<tr><td>{escape(kind['kind'])}</td>"
        + "".join(f'<td class="number">{kind.get(name, 0):,}</td>' for name, _ in KIND_COLUMNS)
        + "</tr>"
        for kind in document["kinds"]
    )
    return f'<div class="scroll"><table><tr><th>kind</th>{head}</tr>{rows}</table></div>'


def _fault_kinds(document: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><td>{escape(fault_kind)}</td><td class="number">{count}</td><td>{escape(document["fault_sentences"][fault_kind])}</td></tr>'
        for fault_kind, count in document["fault_kinds"].items()
    )
    rows += "".join(
        f'<tr><td>{escape(fault_kind)}</td><td class="number other">skipped</td><td>{escape(why)}</td></tr>'
        for fault_kind, why in document["fault_kinds_left_out"].items()
    )
    return f'<h2>Faults</h2><table><tr><th>fault</th><th class="number">times</th><th>meaning</th></tr>{rows}</table>'


def _footer(document: dict[str, Any]) -> str:
    notes = "".join(f"<p>{escape(note)}</p>" for note in document["notes"])
    return (
        f"<footer>{notes}<p>Made {escape(document['made'])} by godwit {escape(document['version'])}. The same plan again: "
        f"<code>{escape(document['again'])}</code></p></footer>"
    )
