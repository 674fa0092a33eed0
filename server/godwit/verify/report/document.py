"""The report of a run as data: everything that the page shows, and what a program would want to know. Times are milliseconds."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from pathlib import Path
from typing import Any

from ... import __version__
from ..brokers.broker import Subscriber
from ..judge.court import Counts
from ..judge.finding import SENTENCES
from ..plan import HARM_SENTENCES
from ..scene import Scene
from ..verdict import Verdict

Document = dict[str, Any]


def build_document(scene: Scene, verdict: Verdict, again: str) -> Document:
    """Reads a scene that has ended, and its verdict; `again` is the command that draws the same plan."""
    scale = scene.plan.scale
    return {
        "made": datetime.datetime.now(datetime.UTC).replace(microsecond=0).isoformat(),
        "version": __version__,
        "broker": verdict.broker,
        "verdict": "broken" if verdict.is_broken else "passed",
        "seed": verdict.seed,
        "again": again,
        "scale": {
            "seconds": scale.seconds,
            "subscribers": scale.subscribers,
            "publishers": scale.publishers,
            "publishes_per_second": scale.rate,
            "content_bytes": scale.size,
        },
        "ended_ms": scene.ended_ms,
        "published_until_ms": scene.published_until_ms,
        "promises": [
            {"promise": promise.value, "state": state, "sentence": SENTENCES[promise]}
            for promise, state in verdict.promises.items()
        ],
        "counts": verdict.counts,
        "memory": verdict.memory,
        "harms": dict(verdict.harms),
        "harms_left_out": verdict.left_out,
        "harm_sentences": {harm.value: HARM_SENTENCES[harm] for harm in HARM_SENTENCES},
        "faults": [done.to_json() for done in scene.harming.done] if scene.harming is not None else [],
        "notes": verdict.notes,
        "kinds": _build_kinds(scene.subscribers),
        "findings": [finding.to_json() for finding in verdict.findings],
        "shortest": verdict.shortest.to_json() if verdict.shortest is not None else None,
        "samples": [
            [each.at_ms, each.published, each.delivered, each.connected, each.memory_bytes, each.gaps]
            for each in scene.samples
        ],
        "clients": [_build_client(subscriber) for subscriber in scene.subscribers],
    }


def write_json(document: Document, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")


def _build_kinds(subscribers: list[Subscriber]) -> list[dict[str, Any]]:
    """What each kind of subscriber was told, added up."""
    kinds: dict[str, Counter[str]] = {}
    for subscriber in subscribers:
        sums = kinds.setdefault(subscriber.mine.kind.value, Counter())
        sums["subscribers"] += 1
        sums.update({name: getattr(subscriber.witness.counts, name) for name in Counts.__slots__})
    return [{"kind": kind, **sums} for kind, sums in kinds.items()]


def _build_client(subscriber: Subscriber) -> dict[str, Any]:
    mine, counts = subscriber.mine, subscriber.witness.counts
    return {
        "name": mine.name,
        "kind": mine.kind.value,
        "selector": mine.selector,
        "encoding": mine.encoding,
        "conflate_ms": mine.conflate_ms,
        "counts": {name: getattr(counts, name) for name in Counts.__slots__},
        **subscriber.trace.to_json(),
    }
