"""The only place that builds a Spark session.

Owns the settings that everything here relies on: UTC, filter push-down, the checkpoint manager, the workers' Python, the Java flags.
Leaves what is read and written to source/, delta/ and publish/.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pyspark
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
    "spark.sql.codegen.cache.maxEntries": "2000",  # an audit makes more classes than the 100 kept ones, and would compile them each time
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # where a column was made: a quarter of an audit's Python calls
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.streaming.metricsEnabled": "false",  # metrics.py reports them
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.stopTimeout": "60s",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",  # a table's files are named, not discovered
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
_FIXED = {
    "spark.sql.session.timezone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.ignorecorruptfiles": "false",
    "spark.sql.files.ignoremissingfiles": "false",
}
"""Settings that cannot be changed, by their names in small letters: other values would skip rows, read them as null, or
assign them to another day.
"""
_MASTER = re.compile(r"local(\[([1-9]\d*|\*)(,\d+)?\]|-cluster\[\d+,\d+,\d+\])?|(spark|k8s|yarn)://.+|yarn", re.ASCII)
_GIVEN = Path(__file__).with_name("spark")
"""The files that Spark is given."""
_LOGGING, _PYTHON = _GIVEN / "log4j2.properties", _GIVEN / "python"
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseSerialGC")
"""Java flags that halve the start of a session; a stream that runs for hours is better off without. With its first compiler alone Java
keeps room for 48 MB of code: the jobs one after another fill it, and the rest would run uncompiled. This is what it keeps with both.
"""
_ROUNDS = ("-XX:+UseParallelGC",)
"""Java flags for repeated batches: 5 to 7 % less CPU for an audit, with pauses that only a stream would notice."""
_JAVA_FLAGS = {"once": _SHORT_LIVED, "rounds": _ROUNDS, "stream": ()}
Life = Literal["once", "rounds", "stream"]
"""The purpose of a session: one run, of which the start is a large part; repeated batches; or continuous queries."""
_PARTITIONS_CLUSTER, _PARTITIONS_LOCAL_MOST = 4, 8
_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")
_SAID_BESIDE = ("Error occurred during", "Error: Could not create", "Error: A fatal", "Picked up", "#", "Caused by")
"""Java's lines before and after its error."""
_JAVA_S = 30
_MEMORY = re.compile(r"[1-9][0-9]{0,8}[kmgtKMGT]")


def build_session(
    settings: SparkSettings,
    *,
    name: str = "godwit",
    life: Life = "stream",
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start a Spark session with the formats `godwit`, `godwit_delta` and `godwit_publish`.

    `name` is the application's name in Spark. `life` chooses the Java flags: "once" for one run, "rounds" for repeated batches, "stream"
    for continuous queries. `extra` has Spark settings that override `settings.conf`. Raises ConfigInvalid for a setting that is not
    valid, and SparkMissing if Java or the master cannot be used.
    """
    check_master(settings.master)
    check_conf(settings.conf)
    check_memory("spark.driver_memory", settings.driver_memory)
    check_memory("spark.executor_memory", settings.executor_memory)
    check_java_options(settings.java_options, life)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable  # else python3 from PATH
    os.environ["PYSPARK_PYTHON"] = find_python(settings.master)
    ask_for_plain_messages(os.environ)
    builder = SparkSession.builder.master(settings.master).appName(name)
    for key, value in spark_conf(settings, life).items():
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


def check_conf(conf: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for Spark settings that would silently lose rows or move them to another day."""
    for key, value in conf.items():
        wanted = _FIXED.get(key.lower())
        if wanted is not None and value.lower() != wanted.lower():
            raise ConfigInvalid("spark.conf", f"{key}={value}", f"must stay {wanted}, else rows would be lost silently")


def check_memory(key: str, text: str) -> None:
    """Raises ConfigInvalid for what Java does not take as the size of its heap: it would end with all of its own usage."""
    if not _MEMORY.fullmatch(text):
        raise ConfigInvalid(key, text, "must be a whole number with a unit, such as 512m or 2g")


def find_python(master: str) -> str:
    """The Python that workers run: with the installed Spark package, on this machine, one that loads the package from compiled files."""
    package = Path(pyspark.__file__).parent
    is_packaged = Path(os.environ.get("SPARK_HOME") or package).resolve() == package.resolve()
    is_ours = master.startswith("local") and is_packaged and os.access(_PYTHON, os.X_OK)
    return str(_PYTHON) if is_ours else sys.executable


def ask_for_plain_messages(environment: MutableMapping[str, str]) -> None:
    """Set the language of Java's messages to English, because errors are recognized by their text. The rest of the locale stays, unless
    Java could not name every file in it.
    """
    locale = environment.pop("LC_ALL", "")
    if locale:
        environment.update(LANG=locale, LC_CTYPE=locale)
    characters = environment.get("LC_CTYPE") or environment.get("LANG") or "C"
    if not characters.lower().replace("-", "").endswith("utf8"):
        environment["LC_CTYPE"] = "C.UTF-8"
    environment["LC_MESSAGES"] = "C"


def spark_conf(settings: SparkSettings, life: Life = "stream") -> dict[str, str]:
    """The settings of a session, by their Spark names."""
    local = settings.master.startswith("local")
    java = [
        "-XX:-UsePerfData",
        f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
        *java_flags(settings.java_options, life),
    ]
    if settings.class_archive:
        archive = Path(settings.class_archive).absolute()
        java.append(
            quote_option(f"-XX:{'SharedArchiveFile' if archive.exists() else 'ArchiveClassesAtExit'}={archive}")
        )
        java.append("-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off")
    java.append(settings.java_options)
    conf = {
        **ALWAYS,
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_FILES,
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions or count_partitions(settings.master)),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": " ".join(filter(None, java)),
        "spark.ui.enabled": "true" if settings.ui_port else "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if settings.ui_port:
        conf["spark.ui.port"] = str(settings.ui_port)
    if local:
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
        # where stages are short, planning the rest again after each takes longer than a better plan saves
        conf["spark.sql.adaptive.enabled"] = "false"
        return conf
    conf["spark.executor.memory"] = settings.executor_memory
    conf["spark.pyspark.python"] = sys.executable
    if settings.executor_cores:
        conf["spark.executor.cores"] = str(settings.executor_cores)
    if urlsplit(settings.master).hostname in ("127.0.0.1", "localhost"):
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
    return conf


def quote_option(flag: str) -> str:
    """A flag for Java as one word of Spark's, whatever characters a path in it has."""
    escaped = flag.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def check_master(master: str) -> None:
    """Raises ConfigInvalid if `master` is not a Spark master, and SparkMissing if a standalone cluster does not answer."""
    if not _MASTER.fullmatch(master):
        raise ConfigInvalid("spark.master", master, "must be local[N], spark://HOST:PORT, k8s://URL or yarn")
    if master.startswith("spark://") and (why := find_unreachable("spark.master", master.removeprefix("spark://"))):
        raise SparkMissing(
            f"the master cannot be reached: {why}; `godwit-pipelines cluster` starts one on this machine"
        )


def count_partitions(master: str) -> int:
    """Default number of partitions of a shuffle: one per core of this machine, with an upper bound, because a stream keeps files for
    each.
    """
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if not local:
        return _PARTITIONS_CLUSTER
    cores = os.cpu_count() or 1 if local[1] == "*" else int(local[1] or 1)
    return min(cores, _PARTITIONS_LOCAL_MOST)


def java_flags(java_options: str, life: Life) -> list[str]:
    """Java flags for the session's life. If the user chose a garbage collector, ours is left out: Java accepts only one."""
    return [flag for flag in _JAVA_FLAGS[life] if not (_COLLECTOR.match(flag) and _COLLECTOR.search(java_options))]


def check_java_options(java_options: str, life: Life) -> None:
    """Raises ConfigInvalid for flags that Spark refuses, and SparkMissing for flags that Java refuses. Spark would ignore some of these
    silently. Without Java the flags are not checked.
    """
    if not java_options:
        return
    try:
        flags = shlex.split(java_options)
    except ValueError as error:
        raise ConfigInvalid("spark.java_options", java_options, f"cannot be read: {error}") from None
    if any(flag.startswith("-Xmx") for flag in flags):
        raise ConfigInvalid("spark.java_options", java_options, "cannot set the memory; use spark.driver_memory")
    words = [find_java(), *java_flags(java_options, life), *flags, "-version"]
    try:
        said = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_JAVA_S)
    except (OSError, subprocess.TimeoutExpired):  # a debugger may be waited for
        return
    if said.returncode:
        lines = [line for line in (said.stdout + said.stderr).splitlines() if not line.startswith(_SAID_BESIDE)]
        why = lines[0].removeprefix("Error: ") if lines else f"it exits with {said.returncode}"
        raise SparkMissing(f"Java does not start with `spark.java_options` = {java_options!r}: {why}")


def find_java() -> str:
    """The Java that Spark starts."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin/java")) if home else shutil.which("java") or "java"


def describe_java() -> str:
    """Why Spark cannot start the Java that it found."""
    home, java = os.environ.get("JAVA_HOME"), find_java()
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=_JAVA_S)
    except OSError:
        where = (
            f"JAVA_HOME is {home}, where Java was not found"
            if home
            else "none was found; set JAVA_HOME if it is not in PATH"
        )
        return f"Spark needs Java 17 or later, and {where}"
    first = (said.stderr or said.stdout).partition("\n")[0]
    return f"Spark needs Java 17 or later and did not start with {java} ({first}); check `spark.java_options`"


def register_all(spark: SparkSession) -> None:
    """Make the formats of this package known to a session: godwit, godwit_delta, godwit_publish."""
    from .delta import DeltaFormat
    from .publish import PublishFormat
    from .source import JournalSource

    for format_class in (JournalSource, DeltaFormat, PublishFormat):
        spark.dataSource.register(format_class)
