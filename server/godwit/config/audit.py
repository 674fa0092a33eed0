"""The section `audit`: which extensions are told what happens, what waits for them, and how long their calls may take."""

from __future__ import annotations

from dataclasses import dataclass

from .forms import check_patterns
from .option import option

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class AuditConfig:
    """Extensions that are told what happens: who came, what was published, what the caches let go, the node's figures."""

    plugins: tuple[str, ...] = option((), "The audits, each as module:attribute or an entry point of godwit.audits.")
    patterns: tuple[str, ...] = option(
        ("/**",), "Of which subjects' messages they are told; empty: of none.", check=check_patterns
    )
    with_content: bool = option(False, "Message events hold the content.")
    overflow: str = option(
        "drop",
        "What a slow audit does: drop: the oldest events go, and it is told how many; block: publishers are held back.",
        choices=("drop", "block"),
    )
    queue_events_max: int = option(
        100_000,
        "Events that wait for one audit, and messages that wait in the engine.",
        minimum=100,
        maximum=10_000_000,
    )
    queue_bytes_max: int = option(
        67_108_864,
        "Bytes of messages that wait for one audit, and of those that wait in the engine.",
        minimum=65_536,
        maximum=2**40,
    )
    batch_events_max: int = option(1_000, "Events of one batch.", minimum=1, maximum=100_000)
    batch_ms: int = option(100, "How long a batch may gather.", minimum=10, maximum=60_000)
    statistics_ms: int = option(10_000, "How often statistics and cache events come.", minimum=100, maximum=HOUR_MS)
    start_timeout_ms: int = option(
        30_000, "An audit whose `start` takes longer keeps the node from starting.", minimum=100, maximum=HOUR_MS
    )
    stop_timeout_ms: int = option(
        2_000,
        "How long audits may take, at the node's end, for what waits, and then for `stop`; after it they are left behind.",
        minimum=0,
        maximum=HOUR_MS,
    )
    take_timeout_ms: int = option(
        30_000,
        "A `take` that runs longer has failed; the next batch waits until it ends.",
        minimum=100,
        maximum=HOUR_MS,
    )
    block_ms_max: int = option(
        10_000,
        "With block: how long an audit whose `take` has failed by time may hold publishers back; then it loses messages.",
        minimum=0,
        maximum=HOUR_MS,
    )
