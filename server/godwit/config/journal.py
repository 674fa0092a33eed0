"""The [journal] section: what the node records, how soon it is on the disk, and how long it is kept.

Pure. With a data directory there is a journal. The engine writes its files; protocol/events.toml defines their fields.
"""

from __future__ import annotations

from dataclasses import dataclass

from .option import option

DAY_MS = 86_400_000
GIB = 2**30


@dataclass(frozen=True, slots=True)
class JournalConfig:
    """What the node records in its data directory and reads at its next start."""

    enabled: bool = option(True, "Keep a journal if there is a data directory.")
    access: bool = option(True, "Record connections and subscriptions.")
    deliveries: bool = option(True, "Record which ranges of messages were sent to which subscription, and latencies.")
    statistics: bool = option(True, "Record the node's statistics.")
    statistics_interval_ms: int = option(
        60_000,
        "Interval of recorded statistics. A window is recorded once in its length at most, long ones once a day.",
        minimum=1_000,
        maximum=DAY_MS,
    )
    flush_interval_ms: int = option(
        10_000, "Interval at which delivery ranges and latencies are written.", minimum=100, maximum=3_600_000
    )
    write_interval_ms: int = option(
        50,
        "Longest time that messages without `ack=disk` are collected before they are written.",
        minimum=1,
        maximum=10_000,
    )
    sync_interval_ms: int = option(
        200,
        "Longest time from a write to the sync; a publish with `ack=disk` syncs at once.",
        minimum=1,
        maximum=60_000,
    )
    queue_bytes_max: int = option(
        67_108_864,
        "Bytes of messages waiting for the disk. Beyond half of it the node does not read from publishers; while the disk fails, "
        "messages beyond it are not recorded, and counted.",
        minimum=1_048_576,
        maximum=2**36,
    )
    segment_bytes_max: int = option(67_108_864, "Size at which a segment is sealed.", minimum=65_536, maximum=2**34)
    segment_age_ms_max: int = option(60_000, "Age at which a segment is sealed.", minimum=1_000, maximum=DAY_MS)
    messages_age_ms_max: int = option(
        7 * DAY_MS, "How long messages are kept, in whole segments; 0: for ever.", minimum=0, maximum=3_650 * DAY_MS
    )
    messages_bytes_max: int = option(
        10 * GIB, "Total size up to which messages are kept, in whole segments; 0: unlimited.", minimum=0, maximum=2**60
    )
    events_age_ms_max: int = option(
        30 * DAY_MS,
        "How long access, deliveries, latency and statistics are kept; 0: for ever.",
        minimum=0,
        maximum=3_650 * DAY_MS,
    )
    events_bytes_max: int = option(
        2 * GIB, "Size up to which each of them is kept; 0: unlimited.", minimum=0, maximum=2**60
    )


def make_journal(journal: JournalConfig, directory: str) -> dict[str, object] | None:
    """The settings for the engine, in the form of core/src/settings.rs. `directory` is the data directory; empty if there is none."""
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
