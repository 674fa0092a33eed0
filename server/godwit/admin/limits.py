"""/v1/limits: every limit with its value, its current use, and how often it was reached since the node started.

Owns which counter of the engine belongs to which limit. If several limits share a code, or the code has other causes, the
answer names the counter. Without a counter the answer is null.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import web

from ..codes import CODES
from ..config import Config
from ..limits import LIMITS
from ..monitoring.fullness import count_used, read_count
from .view import NodeView

COUNTED_BY_NODE = {
    "log_messages_max": "messages_evicted_by_count",
    "log_age_ms_max": "messages_evicted_by_age",
    "logs_bytes_max": "messages_evicted_by_bytes",
    "feed_entries_max": "feed_overruns",
    "feed_bytes_max": "feed_overruns",
    "rate_limit_entries_max": "rate_limit_entries_evicted",
}
ORDINARY = frozenset({"log_messages_max", "log_age_ms_max"})
"""Limits that only remove old messages: reaching one refuses nothing."""
COUNTED_BY_SHARDS = {"stream_window_bytes_max": "window_misses"}
COUNTED_BY_NAME = frozenset(
    limit.name
    for limit in LIMITS
    if re.search("_per_(second|minute)_|_per_(address|identity|tenant|connection)_", limit.name)
)
"""Rates and quotas. Several share a code, so each has a counter of its own."""
CODES_BY_NAME = {facts.name: facts.number for facts in CODES.values()}
CODES_OF_MANY_CAUSES = frozenset({"FieldInvalid"})


def add_routes(router: web.UrlDispatcher, view: NodeView) -> None:
    """Add the route; it reads the engine's statistics once."""

    async def show_limits(_request: web.Request) -> web.Response:
        stats = await asyncio.to_thread(view.engine.stats)
        return web.json_response({"limits": describe(view.read_config(), stats)})

    router.add_get("/v1/limits", show_limits)


def describe(config: Config, stats: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each limit, in the order of the contract."""
    shards = list(stats.get("shards") or ())
    codes = count_codes(shards)
    rows = []
    for limit in LIMITS:
        counted_by, hits = _count_hits(limit.name, limit.code, stats, shards, codes)
        rows.append(
            {
                "name": limit.name,
                "value": config.limits[limit.name],
                "default": limit.default,
                "minimum": limit.minimum,
                "maximum": limit.maximum,
                "scope": limit.scope,
                "code": limit.code or None,
                "code_number": CODES_BY_NAME[limit.code] if limit.code else None,
                "sentence": limit.sentence,
                "source": config.sources[f"limits.{limit.name}"],
                "used": count_used(limit.name, stats, shards),
                "hits": hits,
                "counted_by": counted_by,
                "is_ordinary": limit.name in ORDINARY,
            }
        )
    return rows


def count_codes(shards: Iterable[Mapping[str, Any]]) -> Counter[int]:
    """How often each code was sent: in answers to commands, and in refused or closed connections."""
    commands: Counter[int] = Counter()
    refused: Counter[int] = Counter()
    ended: Counter[int] = Counter()
    for shard in shards:
        for figure, counter in (("command_codes", commands), ("refused_codes", refused), ("close_codes", ended)):
            counter.update({int(code): int(count) for code, count in dict(shard.get(figure) or {}).items()})
    # a refused request ends a connection too, which is then counted by both
    return commands + (refused | ended)


def _count_hits(
    name: str, code: str, stats: Mapping[str, Any], shards: list[Mapping[str, Any]], codes: Counter[int]
) -> tuple[str | None, int | None]:
    if name in COUNTED_BY_NODE:
        return COUNTED_BY_NODE[name], read_count(stats, COUNTED_BY_NODE[name])
    if name in COUNTED_BY_NAME:
        counts = [dict(shard.get("limit_hits") or {}) for shard in shards]
        return f"limit {name}", sum(int(count.get(name, 0)) for count in counts)
    if name in COUNTED_BY_SHARDS:
        return COUNTED_BY_SHARDS[name], sum(read_count(shard, COUNTED_BY_SHARDS[name]) or 0 for shard in shards)
    if code and code not in CODES_OF_MANY_CAUSES and any("command_codes" in shard for shard in shards):
        return f"code {code}", codes[CODES_BY_NAME[code]]
    return None, None
