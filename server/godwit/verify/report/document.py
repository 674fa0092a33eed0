"""The report of a run as data, for the page and for programs. Times are milliseconds."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from pathlib import Path
from typing import Any

from ... import __version__
from ..brokers.broker import Subscriber
from ..judge.context import Counts
from ..judge.finding import SENTENCES
from ..plan import FAULT_SENTENCES
from ..verdict import Verdict
from ..verify_run import VerifyRun

Document = dict[str, Any]


def build_document(run: VerifyRun, verdict: Verdict, again: str) -> Document:
    """The report of a run that has ended, and its verdict; `again` is the command that runs the same plan."""
    scale = run.plan.scale
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
        "ended_ms": run.ended_ms,
        "published_until_ms": run.published_until_ms,
        "guarantees": [
            {"guarantee": guarantee.value, "state": state, "sentence": SENTENCES[guarantee]}
            for guarantee, state in verdict.guarantees.items()
        ],
        "counts": verdict.counts,
        "memory": verdict.memory,
        "fault_kinds": dict(verdict.fault_kinds),
        "fault_kinds_left_out": verdict.left_out,
        "fault_sentences": {fault_kind.value: FAULT_SENTENCES[fault_kind] for fault_kind in FAULT_SENTENCES},
        "faults": [done.to_json() for done in run.injection.done] if run.injection is not None else [],
        "notes": verdict.notes,
        "kinds": _build_kinds(run.subscribers),
        "findings": [finding.to_json() for finding in verdict.findings],
        "shortest": verdict.shortest.to_json() if verdict.shortest is not None else None,
        "samples": [
            [each.at_ms, each.published, each.delivered, each.connected, each.memory_bytes, each.gaps]
            for each in run.samples
        ],
        "clients": [_build_client(subscriber) for subscriber in run.subscribers],
    }


def write_json(document: Document, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")


def _build_kinds(subscribers: list[Subscriber]) -> list[dict[str, Any]]:
    """What each kind of subscriber received, added up."""
    kinds: dict[str, Counter[str]] = {}
    for subscriber in subscribers:
        sums = kinds.setdefault(subscriber.mine.kind.value, Counter())
        sums["subscribers"] += 1
        sums.update({name: getattr(subscriber.checker.counts, name) for name in Counts.__slots__})
    return [{"kind": kind, **sums} for kind, sums in kinds.items()]


def _build_client(subscriber: Subscriber) -> dict[str, Any]:
    mine, counts = subscriber.mine, subscriber.checker.counts
    return {
        "name": mine.name,
        "kind": mine.kind.value,
        "selector": mine.selector,
        "encoding": mine.encoding,
        "conflate_ms": mine.conflate_ms,
        "counts": {name: getattr(counts, name) for name in Counts.__slots__},
        **subscriber.trace.to_json(),
    }
