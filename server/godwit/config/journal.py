"""What the node writes down, how soon it is on the disk and how long it is kept: the [journal] section.

Pure. There is a journal where there is a data directory; the files are the engine's, their fields protocol/events.toml's.
"""

from __future__ import annotations

from dataclasses import dataclass

from .option import option

DAY_MS = 86_400_000
GIB = 2**30


@dataclass(frozen=True, slots=True)
class JournalConfig:
    """What the node writes down in its data directory, and gets back when it starts again."""

    enabled: bool = option(True, "Whether there is a journal where there is a data directory.")
    access: bool = option(True, "Connections and subscriptions are written down too.")
    deliveries: bool = option(True, "What was handed to whom, in ranges, and how long it took, are written down too.")
    statistics: bool = option(True, "The figures of the node are written down too.")
    statistics_interval_ms: int = option(
        60_000,
        "How often they are: each window once in its length, but not more often, the long ones once a day.",
        minimum=1_000,
        maximum=DAY_MS,
    )
    flush_interval_ms: int = option(
        10_000, "How often ranges and latencies are written.", minimum=100, maximum=3_600_000
    )
    write_interval_ms: int = option(
        50, "Messages that nobody waits for are written together, so long after the first.", minimum=1, maximum=10_000
    )
    sync_interval_ms: int = option(
        200,
        "What was written is on the disk so soon; a publish with ack disk does not wait for it.",
        minimum=1,
        maximum=60_000,
    )
    queue_bytes_max: int = option(
        67_108_864,
        "Messages that wait to be on the disk. Past half of it publishers are not read; while the disk fails, what is past it is lost to "
        "the journal, and counted.",
        minimum=1_048_576,
        maximum=2**36,
    )
    segment_bytes_max: int = option(67_108_864, "A segment is sealed at this size.", minimum=65_536, maximum=2**34)
    segment_age_ms_max: int = option(60_000, "A segment is sealed at this age.", minimum=1_000, maximum=DAY_MS)
    messages_age_ms_max: int = option(
        7 * DAY_MS, "Messages are kept so long, in whole segments; 0: for ever.", minimum=0, maximum=3_650 * DAY_MS
    )
    messages_bytes_max: int = option(
        10 * GIB, "Messages are kept up to this size, in whole segments; 0: without bound.", minimum=0, maximum=2**60
    )
    events_age_ms_max: int = option(
        30 * DAY_MS,
        "Access, deliveries, latency and statistics are kept so long; 0: for ever.",
        minimum=0,
        maximum=3_650 * DAY_MS,
    )
    events_bytes_max: int = option(
        2 * GIB, "Each of them is kept up to this size; 0: without bound.", minimum=0, maximum=2**60
    )


def make_journal(journal: JournalConfig, directory: str) -> dict[str, object] | None:
    """What crosses to the engine; its shape is core/src/settings.rs. `directory` is the data directory, empty where there is none."""
    if not directory or not journal.enabled:
        return None
    kept = {"messages": (journal.messages_age_ms_max, journal.messages_bytes_max)}
    events = (journal.events_age_ms_max, journal.events_bytes_max)
    return {
        "directory": f"{directory.rstrip('/')}/journal",
        "messages_bytes_max": journal.queue_bytes_max,
        "write_interval_ms": journal.write_interval_ms,
        "sync_interval_ms": journal.sync_interval_ms,
        "segment_bytes_max": journal.segment_bytes_max,
        "segment_age_ms_max": journal.segment_age_ms_max,
        "retention": kept | dict.fromkeys(("access", "deliveries", "latency", "stats"), events),
        "keeps_access": journal.access,
        "keeps_deliveries": journal.deliveries,
        "flush_interval_ms": journal.flush_interval_ms,
    }
