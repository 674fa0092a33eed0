"""The settings as typed sections: each value with its default, bounds and one sentence. Names end in their unit.

Owns what can be set; config.py owns where values come from (file, environment, flags). Pure. A job that needs settings of its own adds a
section here and names it in Config.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


def option(
    default: Any,
    about: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    secret: bool = False,
) -> Any:
    """A setting: its default, one sentence about it, and its bounds or choices."""
    metadata = {"about": about, "low": low, "high": high, "choices": choices, "secret": secret}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: MappingProxyType(dict(default)), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class JournalSettings:
    """The journals' folder, and how many rows are read at once."""

    paths: tuple[str, ...] = option((), "Data directories of nodes (or their journals); each can be a glob.")
    rows_per_batch: int = option(
        1_000_000, "Maximum rows of a micro-batch, oldest first over all nodes.", low=1, high=1e9
    )
    rows_per_task: int = option(100_000, "Rows per task.", low=1, high=1e8)
    fail_on_data_loss: bool = option(True, "Whether rows that retention removed before they were read are an error.")
    verify: bool = option(True, "Whether the CRC-32C of each row is checked; damaged rows go to the quarantine.")


@dataclass(frozen=True)
class LakeSettings:
    """Where the tables and checkpoints are."""

    path: str = option(
        "lake",
        "Folder of the tables, one folder per layer and table; its path has no %, square bracket, backslash, caret or bar.",
    )
    checkpoints: str = option("", "Folder of the streaming queries' checkpoints; LAKE/_checkpoints if empty.")


@dataclass(frozen=True)
class SparkSettings:
    """The Spark session: master, memory, Java and additional Spark settings."""

    master: str = option("local[*]", "local[N], local[*], or spark://HOST:PORT of a cluster.")
    driver_memory: str = option("1g", "Memory of the driver's Java heap.")
    executor_memory: str = option("1g", "Memory of each executor's Java heap, on a cluster.")
    executor_cores: int = option(0, "Cores of each executor on a cluster; 0: Spark decides.", low=0, high=1024)
    shuffle_partitions: int = option(
        0,
        "Partitions of a shuffle; a stream keeps those of its first run. 0: one per core of this machine, 8 at most; 4 on a cluster.",
        low=0,
        high=1e5,
    )
    java_options: str = option("", "Additional flags of the driver's Java; set the memory with `spark.driver_memory`.")
    class_archive: str = option(
        "", "File of a Java class archive, which halves the start time; the first complete run creates it."
    )
    ui_port: int = option(0, "Port of Spark's web page; 0: none.", low=0, high=65535)
    conf: Mapping[str, str] = option({}, "Additional Spark settings, by their names.")


@dataclass(frozen=True)
class NodeSettings:
    """The node that jobs publish to."""

    url: str = option("http://127.0.0.1:8800", "The node's client port.")
    token: str = option("", "Token that is sent as Authorization: Bearer.", secret=True)
    ack: str = option(
        "", "Acknowledgement of a publish: cached, replicated or disk.", choices=("", "cached", "replicated", "disk")
    )
    timeout_s: float = option(60.0, "How long a publish is retried before the job fails.", low=0.1, high=86_400)
    messages_per_request: int = option(500, "Maximum messages per request.", low=1, high=1000)
    messages_per_second: float = option(0.0, "Maximum messages per second of a job; 0: unlimited.", low=0, high=1e9)


@dataclass(frozen=True)
class KafkaSettings:
    """Kafka topics to land, in addition to the journals or in place of them."""

    servers: str = option("", "HOST:PORT of brokers, separated by commas.")
    topics: tuple[str, ...] = option((), "Topics whose records are landed as messages.")
    jars: str = option("", "Folder with the connector's jars.")
    rows_per_batch: int = option(1_000_000, "Maximum records of a micro-batch.", low=1, high=1e9)
    fail_on_data_loss: bool = option(True, "Whether records that Kafka deleted before they were read stop the job.")


@dataclass(frozen=True)
class MetricsSettings:
    """Where the metrics of running jobs are published, as OpenMetrics."""

    address: str = option("", "HOST:PORT that answers /metrics while a job runs; empty: none.")
    file: str = option("", "File that is rewritten after every batch; empty: none.")


@dataclass(frozen=True)
class MaintainSettings:
    """When files are compacted and removed, and how long rows are kept."""

    compact_files_min: int = option(8, "Number of small files from which a day is compacted.", low=2, high=100_000)
    compact_bytes: int = option(
        128 << 20, "Target size of a compacted file; smaller files count as small.", low=1 << 16, high=1 << 34
    )
    vacuum_hours: float = option(
        24.0, "How long files that are no longer part of a table are kept for running readers.", low=0, high=1e5
    )
    keep_days: Mapping[str, str] = option({}, "Days that rows are kept, by table; other tables are kept forever.")


@dataclass(frozen=True)
class Config:
    """All settings. `sources` has the source of each value that is not the default."""

    journal: JournalSettings = field(default_factory=JournalSettings)
    lake: LakeSettings = field(default_factory=LakeSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    node: NodeSettings = field(default_factory=NodeSettings)
    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    maintain: MaintainSettings = field(default_factory=MaintainSettings)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
