"""The section `audit`: the extensions that receive events, their queues, and the time limits of their calls."""

from __future__ import annotations

from dataclasses import dataclass

from .forms import check_patterns
from .option import option

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """Extensions that receive events: connections, messages, evictions and the node's metrics."""

    plugins: tuple[str, ...] = option(
        (), "Audit extensions, each as module:attribute or an entry point of godwit.audits."
    )
    patterns: tuple[str, ...] = option(
        ("/**",), "Subjects whose messages are reported; empty: none.", check=check_patterns
    )
    with_content: bool = option(False, "Include the content in message events.")
    overflow: str = option(
        "drop",
        "If an audit is slow: drop the oldest events and report their number, or block publishers.",
        choices=("drop", "block"),
    )
    queue_events_max: int = option(
        100_000,
        "Most events waiting for one audit, and most messages waiting in the engine.",
        minimum=100,
        maximum=10_000_000,
    )
    queue_bytes_max: int = option(
        67_108_864,
        "Most bytes waiting in each of an audit's two queues, and of messages in the engine; an event takes at least 700.",
        minimum=65_536,
        maximum=2**40,
    )
    batch_events_max: int = option(1_000, "Most events in one batch.", minimum=1, maximum=100_000)
    batch_ms: int = option(100, "Longest time that a batch is collected.", minimum=10, maximum=60_000)
    statistics_ms: int = option(10_000, "Interval of statistics and cache events.", minimum=100, maximum=HOUR_MS)
    start_timeout_ms: int = option(
        30_000, "Time limit of an audit's `start`; beyond it the node does not start.", minimum=100, maximum=HOUR_MS
    )
    stop_timeout_ms: int = option(
        2_000,
        "Time limit at shutdown for waiting events, and again for `stop`; beyond it the node stops anyway.",
        minimum=0,
        maximum=HOUR_MS,
    )
    take_timeout_ms: int = option(
        30_000,
        "Time limit of `take`; beyond it the batch has failed, and the next one waits until the call ends.",
        minimum=100,
        maximum=HOUR_MS,
    )
    block_ms_max: int = option(
        10_000,
        "With block: how long an audit whose `take` timed out may block publishers; then it loses messages.",
        minimum=0,
        maximum=HOUR_MS,
    )
