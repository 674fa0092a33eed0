"""The JSON Schema of /v1/stats, and the reference page of all metrics, both made from the table of metrics. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .metric_specs import (
    ADMIN_FIGURES,
    AUDIT_FIGURES,
    CERTIFICATE_FIGURE,
    CODE,
    FAILED,
    LIMIT,
    NODE,
    PROCESS,
    PROTOCOL,
    REACHED,
    REASON,
    SHARD,
    Kind,
    MetricSpec,
)
from .windows import WINDOWS

Schema = dict[str, Any]
_NUMBER: Schema = {"type": "number", "minimum": 0}
_STATISTICS: Schema = {
    "type": "object",
    "properties": {
        "max": {**_NUMBER, "description": "The largest value of any second."},
        "mean": {**_NUMBER, "description": "The mean over the seconds for which data exists."},
        "deviation": {**_NUMBER, "description": "The standard deviation of the values of the seconds."},
    },
    "required": ["max", "mean", "deviation"],
    "additionalProperties": False,
}
SCOPES: dict[str, tuple[MetricSpec, ...]] = {
    "node": (*NODE, *(figure for figure in (*PROTOCOL, *SHARD) if figure.name != "cpu_seconds")),
    "shards": (*PROTOCOL, *SHARD),
    "protocols": PROTOCOL,
    "codes": CODE,
    "reasons": REASON,
}
"""The metrics of each scope."""
METRICS = (
    ("", NODE, "", ""),
    ("", PROTOCOL, "", "shard, protocol"),
    ("shard_", SHARD, "", "shard"),
    ("", CODE, "_by_code", "code, name"),
    ("", REASON, "_by_reason", "reason"),
)
"""(prefix, figures, suffix, labels) of the metrics."""
_KEYS = {
    "shards": ("^[0-9]+$", "By the shard's number."),
    "protocols": ("^[a-z0-9_-]+$", "By protocol; http also has connections that have not chosen a protocol yet."),
    "codes": ("^[0-9]+$", "By code, once it has occurred."),
    "reasons": ("^[a-z_]+$", "By the reason of a gap."),
}


def make_schema() -> Schema:
    """JSON Schema 2020-12 of the whole answer."""
    text = {"type": "string"}
    properties: Schema = {
        "node": {**text, "description": "The node's name."},
        "version": text,
        "condition": {**text, "enum": ["starting", "ready", "draining", "failed", "stopped"]},
        "uptime_ms": {"type": "integer", "minimum": 0},
        "client": {**text, "description": "The client port's address."},
        "time": {
            "type": "integer",
            "minimum": 0,
            "description": "When `now` was measured, Unix time in milliseconds. Measured once a second.",
        },
        "now": _make_tree(_NUMBER, {}),
        "windows": {
            "type": "object",
            "properties": {name: _make_window(name) for name in WINDOWS},
            "additionalProperties": False,
        },
        "engine": {
            "type": "object",
            "description": "The engine's counters since the start. They can change in any version.",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The statistics of a Godwit node",
        "type": "object",
        "properties": properties,
        "required": list(properties),
    }


def list_stats_metrics() -> Iterator[tuple[str, str, str, str]]:
    """(name, unit, meaning, scopes) of every metric, in the table's order."""
    seen: dict[str, tuple[str, str, list[str]]] = {}
    for scope, figures in SCOPES.items():
        for figure in figures:
            if figure.metric:
                known = seen.setdefault(figure.metric, (figure.metric_unit, figure.sentence, []))
                known[2].append(scope)
    for name, (unit, sentence, scopes) in seen.items():
        yield name, unit, sentence, ", ".join(scopes)


def describe_metrics() -> str:
    """The reference page: every metric of /v1/stats, every window, every metric of /metrics."""
    stats = "\n".join(f"| `{name}` | {unit} | {scopes} | {said} |" for name, unit, said, scopes in list_stats_metrics())
    windows = "\n".join(f"| `{window.name}` | {window.seconds:,} |" for window in WINDOWS.values())
    metrics = "\n".join(f"| `{name}` | {kind} | {labels} | {said} |" for name, kind, labels, said in list_metrics())
    return f"""# Metrics

Every metric of a node. How to use them: [Metrics and alerts](../guides/monitor.md).

## Statistics

In `/v1/stats` and on `/$node/NAME/…`. A counter is shown by its growth per second.

| metric | unit | of | meaning |
|---|---|---|---|
{stats}

## Windows

| window | seconds |
|---|---|
{windows}

A month is thirty days.

## Prometheus

In `/metrics`, together with the usual `process_…` metrics.

| metric | kind | labels | meaning |
|---|---|---|---|
{metrics}
"""


def list_metrics() -> Iterator[tuple[str, str, str, str]]:
    """(name, kind, labels, meaning) of every metric, as metrics.py shows them."""
    for prefix, figures, suffix, labels in METRICS:
        for figure in figures:
            if labels or figure.name not in PROCESS:  # of the node; a shard has its own cpu_seconds
                total = "_total" if figure.kind is Kind.COUNTER else ""
                kind = "counter" if figure.kind is Kind.COUNTER else "gauge"
                yield f"godwit_{prefix}{figure.name}{suffix}{total}", kind, labels, figure.sentence
    yield "godwit_shard_failed", "gauge", "shard", FAILED.sentence
    yield "godwit_limit", "gauge", "limit", LIMIT.sentence
    yield "godwit_limit_reached_total", "counter", "limit", REACHED.sentence
    outcomes = {
        "asked": "",
        "granted": " that it allowed",
        "refused": " that it denied",
        "failed": " without an answer in time, or with an error",
    }
    for outcome, which in outcomes.items():
        yield f"godwit_authorizer_{outcome}_total", "counter", "", f"Calls of the authorizer{which}."
    revoked = "Grants that were withdrawn at once, because the token or identity had been revoked meanwhile."
    yield "godwit_authorizer_revoked_total", "counter", "", revoked
    yield "godwit_authorizer_waiting", "gauge", "", "Calls of the authorizer without an answer yet."
    yield "godwit_authorizer_stuck", "gauge", "", "Calls of the authorizer that were cancelled and have not ended."
    for figure in (*AUDIT_FIGURES, *ADMIN_FIGURES, CERTIFICATE_FIGURE):
        total, kind = ("_total", "counter") if figure.kind is Kind.COUNTER else ("", "gauge")
        yield f"godwit_{figure.name}{total}", kind, "", figure.sentence
    yield "godwit_condition", "state set", "godwit_condition", "The node's condition: exactly one is 1."
    yield "godwit_info", "info", "node, version", "The node's name and version."
    yield "godwit_uptime_seconds", "gauge", "", "Time since the node started."


def _make_window(name: str) -> Schema:
    seconds = {"const": WINDOWS[name].seconds}
    covered = {**_NUMBER, "description": "Seconds of the window for which data exists."}
    return _make_tree(_STATISTICS, {"seconds": seconds, "covered_seconds": covered})


def _make_tree(leaf: Schema, about: Schema) -> Schema:
    properties: Schema = {**about, "node": _make_scope(SCOPES["node"], leaf)}
    for group, (key, sentence) in _KEYS.items():
        properties[group] = {
            "type": "object",
            "description": sentence,
            "patternProperties": {key: _make_scope(SCOPES[group], leaf)},
            "additionalProperties": False,
        }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _make_scope(figures: Iterable[MetricSpec], leaf: Schema) -> Schema:
    described = {
        figure.metric: {**leaf, "description": f"{figure.sentence} Unit: {figure.metric_unit}."}
        for figure in figures
        if figure.kind is not Kind.NUMBER
    }
    return {"type": "object", "properties": described, "additionalProperties": False}
