"""The report as one page: the verdict first, then the promises, the timeline, what each kind saw, and what was found. Pure but for
reading its own style sheet. Nothing is fetched, nothing runs.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from ...words import counted
from .timeline import Timeline

STYLE = Path(__file__).with_name("page.css")
FINDINGS_SHOWN = 12
SHORT_S = 120  # a run is told in seconds up to here
LEGEND = (
    ("var(--up)", "connected"),
    ("var(--away)", "not connected"),
    ("var(--stall)", "made to stop reading"),
    ("var(--warn)", "told of a gap, with its count"),
    ("var(--bad)", "a promise was broken; dashed lines are restarts of the node"),
)
KIND_COLUMNS = (
    ("subscribers", "clients"),
    ("messages", "messages"),
    ("losses", "connections lost"),
    ("resumes", "resumes"),
    ("again", "came again after a resume token"),
    ("gaps", "gaps told"),
    ("missed", "missed, all told"),
    ("snapshots", "snapshots"),
    ("conflated", "conflated"),
)


def build_page(document: dict[str, Any]) -> str:
    """The whole page."""
    name = "PASSED" if document["verdict"] == "passed" else "BROKEN"
    parts = [
        _verdict(document, name),
        _tiles(document),
        "<h2>What was promised</h2>",
        _promises(document),
        _findings(document),
        "<h2>What happened, and what each client saw</h2>",
        _legend(),
        f'<div class="scroll">{Timeline(document).draw()}</div>',
        "<h2>By kind of subscriber</h2>",
        _kinds(document),
        _harms(document),
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
    found = _say_breaches(document) if broken else _say_kept(document)
    seconds = document["ended_ms"] / 1000
    lasted = f"{seconds:.0f} seconds" if seconds < SHORT_S else f"{seconds / 60:.1f} minutes"
    return (
        f"<h1>Proof of delivery: {escape(str(document['broker']))}, {lasted}, seed {document['seed']}</h1>"
        f'<section class="verdict {"broken" if broken else ""}"><b>{name}</b><p>{_say_scene(document)} {found}</p></section>'
    )


def _say_scene(document: dict[str, Any]) -> str:
    counts, faults = document["counts"], sum(document["harms"].values())
    passed = (
        f"{counts['acknowledged']:,} messages were acknowledged and {counts['messages']:,} were delivered to "
        f"{counted(counts['subscribers'], 'subscriber')}"
    )
    if not faults:
        return f"{passed}; nothing was harmed."
    fell = f" and took the node down {counted(counts['restarts'], 'time')}" if counts["restarts"] else ""
    return f"{passed}, while {counted(faults, 'fault')} broke {counted(counts['losses'], 'connection')}{fell}."


def _say_breaches(document: dict[str, Any]) -> str:
    total = counted(document["counts"]["breaches"], "time")
    return f"{total} a promise was broken; the shortest history that shows it is below."


def _say_kept(document: dict[str, Any]) -> str:
    """Nothing is said of a promise that was not judged, but that it was not."""
    gaps = document["counts"]["gaps"]
    words = {
        "no loss": "nothing was lost in silence",
        "no repeat": "nothing came twice",
        "order": "everything came in order",
        "gaps": f"each of the {gaps:,} gaps was told and counted right" if gaps > 1 else "every gap was told",
    }
    kept = [words[one["promise"]] for one in document["promises"] if one["state"] == "kept" and one["promise"] in words]
    unjudged = [one["promise"] for one in document["promises"] if one["state"] == "not promised"]
    said = ", ".join(kept[:-1]) + " and " + kept[-1] if len(kept) > 1 else "".join(kept)
    said = f"{said[:1].upper()}{said[1:]}." if said else ""
    if unjudged:
        said += f" Not judged, because {document['broker']} does not promise it: {', '.join(unjudged)}."
    return escape(said.strip())


def _tiles(document: dict[str, Any]) -> str:
    counts, memory = document["counts"], document["memory"]
    tiles = [
        (f"{counts['acknowledged']:,}", "publishes acknowledged"),
        (f"{counts['messages']:,}", "deliveries judged"),
        (f"{counts['merges_judged']:,}", "merged values judged"),
        (f"{sum(document['harms'].values()):,}", "faults"),
        (f"{counts['losses']:,}", "connections lost"),
        (f"{counts['restarts']:,}", "restarts of the node"),
        (f"{counts['gaps']:,}", f"gaps told, {counts['missed']:,} messages"),
        (f"{counts['breaches']:,}", "breaches"),
    ]
    if memory:
        tiles.append((f"{memory['peak_mb']:.0f} MB", f"memory at most; {memory['limit_mb']:.0f} MB stated"))
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile"><b>{a}</b><span>{b}</span></div>' for a, b in tiles)
        + "</div>"
    )


def _promises(document: dict[str, Any]) -> str:
    signs = {"kept": "✓ kept", "broken": "✗ broken"}
    rows = "".join(
        f"<tr><td>{escape(one['promise'])}</td>"
        f'<td class="{one["state"] if one["state"] in signs else "other"}">{signs.get(one["state"], one["state"])}</td>'
        f"<td>{escape(one['sentence'])}</td></tr>"
        for one in document["promises"]
    )
    return f'<table class="promises"><tr><th>promise</th><th>verdict</th><th>which is</th></tr>{rows}</table>'


def _findings(document: dict[str, Any]) -> str:
    shortest = document["shortest"]
    if shortest is None:
        return ""
    others = [finding for finding in document["findings"] if finding != shortest][: FINDINGS_SHOWN - 1]
    shown = _finding(shortest) + "".join(map(_finding, others))
    left = document["counts"]["breaches"] - 1 - len(others)
    more = f"<p>{left:,} more are not shown; the JSON report has the first of them.</p>" if left > 0 else ""
    return f"<h2>What was found, the shortest history first</h2>{shown}{more}"


def _finding(finding: dict[str, Any]) -> str:
    where = f" on {escape(finding['subject'])}" if finding["subject"] else ""
    history = escape("\n".join(finding["history"]))
    return (
        f'<p><span class="broken">{escape(finding["promise"])}</span>: {escape(finding["who"])}{where} at '
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


def _harms(document: dict[str, Any]) -> str:
    rows = "".join(
        f'<tr><td>{escape(harm)}</td><td class="number">{count}</td><td>{escape(document["harm_sentences"][harm])}</td></tr>'
        for harm, count in document["harms"].items()
    )
    rows += "".join(
        f'<tr><td>{escape(harm)}</td><td class="number other">left out</td><td>{escape(why)}</td></tr>'
        for harm, why in document["harms_left_out"].items()
    )
    return f'<h2>Harm</h2><table><tr><th>what</th><th class="number">times</th><th>which is</th></tr>{rows}</table>'


def _footer(document: dict[str, Any]) -> str:
    notes = "".join(f"<p>{escape(note)}</p>" for note in document["notes"])
    return (
        f"<footer>{notes}<p>Made {escape(document['made'])} by godwit {escape(document['version'])}. The same plan again: "
        f"<code>{escape(document['again'])}</code></p></footer>"
    )
