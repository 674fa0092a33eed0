"""Metrics as JSON: the tree of /v1/stats, and its pieces as messages on `$node`. Pure.

A scope is its path in the tree. A leaf is a number (now) or `{"max", "mean", "deviation"}` (a window). Invariant: what is
not known is left out, never a made-up zero; everything is finite.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .moments import Statistics
from .stats_snapshot import Scope, Series
from .windows import WINDOWS

Tree = dict[str, Any]
ROOT = "/$node"
SEGMENT_CHARACTERS_MAX = 64
GROUPS = ("shards", "protocols", "codes", "reasons")
"""Scopes in addition to the node's."""
PUSH_INTERVAL_S_MIN, PUSH_INTERVAL_S_MAX = 5, 60
"""The last minute is summed at most this often, because that was half of the cost of the statistics."""
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


def make_root(name: str) -> str:
    """The subject prefix for a node's metrics; characters that are not allowed in a subject become dashes."""
    segment = _UNFIT.sub("-", name)[:SEGMENT_CHARACTERS_MAX].strip(".-")
    return f"{ROOT}/{segment or 'node'}"


def show_now(sample: Mapping[Series, float]) -> Tree:
    """The tree of one sample."""
    return _grow((series, shorten(value)) for series, value in sample.items())


def show_window(name: str, found: Mapping[Series, Statistics]) -> Tree:
    """The tree of one window, and how many seconds of it are known."""
    covered_s = max((statistics.weight for statistics in found.values()), default=0.0)
    tree = _grow((series, _show_statistics(statistics)) for series, statistics in found.items())
    return {"seconds": WINDOWS[name].seconds, "covered_seconds": shorten(round(covered_s, 3)), **tree}


def list_pushes(root: str, leaf: str, time_ms: int, tree: Tree) -> Iterator[tuple[str, bytes]]:
    """(subject, content) of each scope of a tree: the node's own, each shard's, each protocol's, all codes, all reasons."""
    about = {"time": time_ms} | {name: tree[name] for name in ("seconds", "covered_seconds") if name in tree}
    yield f"{root}/{leaf}", _encode(about | tree["node"])
    for group in ("shards", "protocols"):
        for name, scope in tree[group].items():
            yield f"{root}/{group}/{name}/{leaf}", _encode(about | scope)
    for group in ("codes", "reasons"):
        yield f"{root}/{group}/{leaf}", _encode(about | tree[group])


def list_due(before_s: float, now_s: float) -> list[str]:
    """The windows to publish now: each sixty times in its length, but at least 5 s and at most 60 s apart."""
    bounds = (PUSH_INTERVAL_S_MIN, PUSH_INTERVAL_S_MAX)
    intervals = ((name, min(max(window.seconds / 60, bounds[0]), bounds[1])) for name, window in WINDOWS.items())
    return [name for name, interval_s in intervals if now_s // interval_s != before_s // interval_s]


def shorten(value: float) -> float:
    """Round to six significant digits; integers and large values stay exact."""
    if value.is_integer() or abs(value) >= 1e6:
        return round(value)
    return float(f"{value:.6g}")


def _show_statistics(found: Statistics) -> Tree:
    return {"max": shorten(found.maximum), "mean": shorten(found.mean), "deviation": shorten(found.deviation)}


def _grow(leaves: Iterable[tuple[Series, Any]]) -> Tree:
    tree: Tree = {"node": {}, **{group: {} for group in GROUPS}}
    for series, leaf in leaves:
        _find_branch(tree, series.scope)[series.metric] = leaf
    return tree


def _find_branch(tree: Tree, scope: Scope) -> Tree:
    for part in scope:
        tree = tree.setdefault(part, {})
    return tree


def _encode(fields: Tree) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()
