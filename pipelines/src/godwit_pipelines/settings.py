"""The settings as typed sections: each value with its default, unit in its name, bounds and one sentence.

Owns what can be set; where values come from (file, environment, flags) is config.py's. Pure. A job that needs settings of
its own adds a section here and names it in Config.
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
    """A value with its sentence and what it must be."""
    metadata = {"about": about, "low": low, "high": high, "choices": choices, "secret": secret}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: MappingProxyType(dict(default)), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class JournalSettings:
    """Where the journals are, and how much of them is taken at once."""

    paths: tuple[str, ...] = option((), "Data directories of nodes (or their journals), each may be a glob.")
    rows_per_batch: int = option(
        1_000_000, "Most rows of one micro-batch: the oldest, whichever node's they are.", low=1, high=1e9
    )
    rows_per_task: int = option(100_000, "Rows that one task reads; a batch becomes so many tasks.", low=1, high=1e8)
    fail_on_data_loss: bool = option(True, "Whether rows that retention let go before they were read are an error.")
    verify: bool = option(True, "Whether each message's CRC-32C is checked; a wrong row goes to quarantine.")


@dataclass(frozen=True)
class LakeSettings:
    """Where the tables are."""

    path: str = option(
        "lake",
        "Folder of the tables, one folder per layer and table; its path has no %, square bracket, backslash, caret or bar.",
    )
    checkpoints: str = option("", "Folder of the streaming queries' checkpoints; LAKE/_checkpoints if empty.")


@dataclass(frozen=True)
class SparkSettings:
    """The session."""

    master: str = option("local[*]", "local[N], local[*], or spark://HOST:PORT of a cluster.")
    driver_memory: str = option("1g", "Memory of the driver's Java heap.")
    executor_memory: str = option("1g", "Memory of each executor's Java heap, on a cluster.")
    executor_cores: int = option(0, "Cores of each executor on a cluster; 0 leaves it to Spark.", low=0, high=1024)
    shuffle_partitions: int = option(
        0,
        "Partitions of a shuffle; a stream keeps those of its first run. 0: one for each core of this machine, 8 at most; 4 on a cluster.",
        low=0,
        high=1e5,
    )
    java_options: str = option(
        "", "Further flags of the driver's Java, each one that it knows; how much memory is `spark.driver_memory`."
    )
    class_archive: str = option(
        "", "File of a Java class archive, which halves the start; made by the first run that ends."
    )
    ui_port: int = option(0, "Port of Spark's own page; 0 has none.", low=0, high=65535)
    conf: Mapping[str, str] = option({}, "Further settings of Spark, by their own names.")


@dataclass(frozen=True)
class NodeSettings:
    """The node that jobs publish to."""

    url: str = option("http://127.0.0.1:8800", "The node's client port.")
    token: str = option("", "What the node is shown as Authorization: Bearer.", secret=True)
    ack: str = option(
        "", "What a publish waits for: cached, replicated or disk.", choices=("", "cached", "replicated", "disk")
    )
    timeout_s: float = option(60.0, "How long a publish is tried again before the job fails.", low=0.1, high=86_400)
    messages_per_request: int = option(500, "Most messages of one request.", low=1, high=1000)
    messages_per_second: float = option(0.0, "Most messages a second of one job; 0 has no bound.", low=0, high=1e9)


@dataclass(frozen=True)
class KafkaSettings:
    """Messages that come from Kafka beside, or in place of, those of journals."""

    servers: str = option("", "HOST:PORT of brokers, joined by commas.")
    topics: tuple[str, ...] = option((), "Topics whose records are landed as messages.")
    jars: str = option("", "Folder with the connector's jars.")
    rows_per_batch: int = option(1_000_000, "Most records of one micro-batch.", low=1, high=1e9)
    fail_on_data_loss: bool = option(True, "Whether records that Kafka let go of before they were read end the job.")


@dataclass(frozen=True)
class MetricsSettings:
    """What the streaming queries say of themselves, as OpenMetrics."""

    address: str = option("", "HOST:PORT that answers /metrics while a job runs; empty has none.")
    file: str = option("", "File that is rewritten after every batch; empty has none.")


@dataclass(frozen=True)
class MaintainSettings:
    """Keeping tables small and lawful."""

    compact_files_min: int = option(8, "A day with at least so many small files is compacted.", low=2, high=100_000)
    compact_bytes: int = option(
        128 << 20, "Size a compacted file aims at; smaller ones are small.", low=1 << 16, high=1 << 34
    )
    vacuum_hours: float = option(
        24.0, "Files no longer part of a table are kept so long for who still reads.", low=0, high=1e5
    )
    keep_days: Mapping[str, str] = option({}, "Days that a table's rows are kept, by table; others are kept for good.")


@dataclass(frozen=True)
class Config:
    """All settings; `sources` says where each that is not a default came from."""

    journal: JournalSettings = field(default_factory=JournalSettings)
    lake: LakeSettings = field(default_factory=LakeSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    node: NodeSettings = field(default_factory=NodeSettings)
    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    maintain: MaintainSettings = field(default_factory=MaintainSettings)
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)
