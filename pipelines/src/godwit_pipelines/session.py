"""The only place where a Spark session is built.

Owns the settings that everything here relies on: UTC, the push-down of filters, the checkpoint manager, the Python that
workers run, the Java flags. Leaves what is read and written to source/, delta/ and publish/.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from urllib.parse import urlsplit

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from .errors import ConfigInvalid, SparkMissing
from .reach import find_unreachable
from .settings import SparkSettings

CHECKPOINT_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""On a local disk four times as fast as the default, which forks a program for each small file it writes."""

ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",  # a source that takes filters is refused without it
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.codegen.cache.maxEntries": "2000",  # an audit makes more classes than the 100 that are kept: each time anew, and cold
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.streaming.metricsEnabled": "false",  # metrics.py tells them
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",  # a table's files are named, not discovered
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
_MASTER = re.compile(r"local(\[(\d+|\*)(,\d+)?\]|-cluster\[\d+,\d+,\d+\])?|(spark|k8s|yarn)://.+|yarn")
_LOGGING = Path(__file__).with_name("log4j2.properties")
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java flags that halve the start of a session; a stream that runs for hours is better off without."""


def build_session(
    settings: SparkSettings,
    *,
    name: str = "godwit",
    is_short: bool = False,
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session as the jobs need it, sources and sinks registered. `is_short` favours its start over its speed."""
    check_master(settings.master)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable  # else python3 from PATH
    ask_for_plain_messages(os.environ)
    builder = SparkSession.builder.master(settings.master).appName(name)
    for key, value in spark_conf(settings, is_short=is_short).items():
        builder = builder.config(key, value)
    for key, value in {**settings.conf, **(extra or {})}.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SparkMissing(describe_java()) from error
    register_all(spark)
    return spark


def ask_for_plain_messages(environment: MutableMapping[str, str]) -> None:
    """What Java says of a refused file is looked for in what it raises: not in the user's language. All else of the locale stays."""
    locale = environment.pop("LC_ALL", "")
    if locale:
        environment.update(LANG=locale, LC_CTYPE=locale)
    environment["LC_MESSAGES"] = "C"


def spark_conf(settings: SparkSettings, *, is_short: bool = False) -> dict[str, str]:
    """The settings of a session, by Spark's names."""
    local = settings.master.startswith("local")
    java = ["-XX:-UsePerfData", f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", *([SHORT_LIVED] if is_short else [])]
    if settings.class_archive:
        archive = Path(settings.class_archive).absolute()
        java.append(f"-XX:{'SharedArchiveFile' if archive.exists() else 'ArchiveClassesAtExit'}={archive}")
        java.append("-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off")
    java.append(settings.java_options)
    conf = {
        **ALWAYS,
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILES,
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": " ".join(filter(None, java)),
        "spark.ui.enabled": "true" if settings.ui_port else "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if settings.ui_port:
        conf["spark.ui.port"] = str(settings.ui_port)
    if local:
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
        return conf
    conf["spark.executor.memory"] = settings.executor_memory
    conf["spark.pyspark.python"] = sys.executable
    if settings.executor_cores:
        conf["spark.executor.cores"] = str(settings.executor_cores)
    if urlsplit(settings.master).hostname in ("127.0.0.1", "localhost"):
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
    return conf


def check_master(master: str) -> None:
    """Raises ConfigInvalid for what is no master, SparkMissing for a cluster of Spark's own that does not answer."""
    if not _MASTER.fullmatch(master):
        raise ConfigInvalid("spark.master", master, "must be local[N], spark://HOST:PORT, k8s://URL or yarn")
    if master.startswith("spark://") and (why := find_unreachable("spark.master", master.removeprefix("spark://"))):
        raise SparkMissing(
            f"the master cannot be reached: {why}; `godwit-pipelines cluster` starts one on this machine"
        )


def describe_java() -> str:
    """What Spark found where it looks for Java, and does not begin with."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin/java")) if home else shutil.which("java") or "java"
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=30)
    except OSError:
        where = (
            f"JAVA_HOME is {home}, where there is none" if home else "there is none; set JAVA_HOME if it is not in PATH"
        )
        return f"Spark needs Java 17 or later, and {where}"
    first = (said.stderr or said.stdout).partition("\n")[0]
    return (
        f"Spark needs Java 17 or later and did not begin with {java} ({first}); is `spark.java_options` what it takes?"
    )


def register_all(spark: SparkSession) -> None:
    """Make the formats of this package known to a session: godwit, godwit_delta, godwit_publish."""
    from .delta import DeltaFormat
    from .publish import PublishFormat
    from .source import JournalSource

    for format_class in (JournalSource, DeltaFormat, PublishFormat):
        spark.dataSource.register(format_class)
