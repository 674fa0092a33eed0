"""A job's error becomes one sentence with an exit code: Kafka's client, a refused file, no master, no Java. Texts are as Spark
gives them.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import py4j
import pyarrow as pa
import pyspark
import pytest
from click.testing import CliRunner
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from godwit_pipelines.cli import main
from godwit_pipelines.cluster import Cluster, free_port
from godwit_pipelines.errors import (
    EXIT_UNEXPECTED,
    ConfigInvalid,
    DiskFailed,
    KafkaFailed,
    LakeBusy,
    PipelineError,
    SparkMissing,
    TableMissing,
)
from godwit_pipelines.lake import holding
from godwit_pipelines.progress import translate
from godwit_pipelines.session import (
    ask_for_plain_messages,
    build_session,
    check_conf,
    check_java_options,
    check_master,
    find_java,
    find_python,
    java_flags,
    spark_conf,
)
from godwit_pipelines.settings import Config, SparkSettings
from godwit_pipelines.source.kafka_faults import reach

CLIENT = "org.apache.kafka.common.errors."
FAILED = "[STREAM_FAILED] Query [id = f49c, runId = 1f82] terminated with exception: "
LOST = """Some data may have been lost because they are not available in Kafka any more;
either the data was aged out by Kafka or the topic may have been deleted before all the data in the
topic was processed.
If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to false.
Reason: Could not read records in offset [250, 350) for topic partition loss-2
with consumer group spark-kafka-source-aa31-executor. SQLSTATE: XXKST
=== Streaming Query ==="""


@pytest.mark.parametrize(
    "text, said",
    [
        (
            f"{CLIENT}UnknownTopicOrPartitionException: This server does not host this topic-partition. SQLSTATE: XXKST\n",
            "This server does not host this topic-partition. (UnknownTopicOrPartitionException); check its name in kafka.topics",
        ),
        (
            f"{CLIENT}TimeoutException: Timed out waiting for a node assignment. Call: listNodes SQLSTATE: XXKST\n",
            "Timed out waiting for a node assignment. Call: listNodes (TimeoutException); the brokers of kafka.servers",
        ),
        (LOST, "Could not read records in offset [250, 350) for topic partition loss-2: Kafka deleted them"),
    ],
)
def test_a_query_that_kafka_ended_says_why(text: str, said: str) -> None:
    raised = translate(StreamingQueryException(FAILED + text))
    assert isinstance(raised, KafkaFailed) and str(raised).startswith(said)


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device",
        "java.io.IOException: Mkdirs failed to create file:/lake/_checkpoints/land-messages (exists=false, cwd=file:/)",
        "org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: file:/lake",
        "OSError: [Errno 30] Read-only file system: '/lake/gold'",
        "PermissionError: [Errno 13] Permission denied: '/node/journal'",
    ],
)
def test_a_file_that_is_refused_is_told_in_the_words_of_who_was_refused(line: str) -> None:
    raised = translate(StreamingQueryException(f"{FAILED}: Traceback\n  File\n: {line}\n\tat java.lang.Thread"))
    assert isinstance(raised, DiskFailed) and raised.exit_code == 6
    assert str(raised) == f"a file of the lake or of a journal: {line}"


def test_a_checkpoint_that_lost_a_part_is_told_with_what_to_do() -> None:
    text = (
        "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE] Checkpoint location file:/lake/_checkpoints/land-stats is in an "
    )
    raised = translate(StreamingQueryException(f"{FAILED}{text}inconsistent state: the metadata file is missing but"))
    assert isinstance(raised, TableMissing) and str(raised).startswith("/lake/_checkpoints/land-stats ")


@pytest.mark.parametrize(
    "line",
    [
        "[PATH_NOT_FOUND] Path does not exist: file:/a b/bronze/messages/date=2026-11-21/1f.parquet. SQLSTATE: 42K03",
        "java.io.FileNotFoundException: File file:/a b/bronze/messages/date=2026-11-21/1f.parquet does not exist",
        "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file "
        "file:///a b/bronze/messages/date=2026-11-21/1f.parquet. File does not exist. It is possible the",
    ],
)
def test_a_file_of_a_table_that_is_gone_is_told_as_a_table_that_cannot_be_read(line: str) -> None:
    raised = translate(StreamingQueryException(f"{FAILED}{line}\n\tat java.lang.Thread"))
    assert isinstance(raised, TableMissing) and raised.exit_code == 4
    assert str(raised).startswith("/a b/bronze/messages/date=2026-11-21/1f.parquet ")


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,4]", "yarn", "k8s://https://a:6443"])
def test_masters_that_spark_knows_are_taken(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize(
    "master", ["", "local[x]", "local[0]", "sprak://a:7077", "spark://", "spark://host", "localhost"]
)
def test_what_is_no_master_is_told_before_spark_starts(master: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"spark\.master"):
        check_master(master)


def test_a_master_that_does_not_answer_is_told_before_spark_waits_for_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        place = f"127.0.0.1:{gone.getsockname()[1]}"
    with pytest.raises(SparkMissing, match=place):
        check_master(f"spark://{place}")


def test_java_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    words = [
        sys.executable,
        "-m",
        "godwit_pipelines",
        "run",
        "land",
        "--journal",
        str(tmp_path),
        "--lake",
        str(tmp_path),
    ]
    done = subprocess.run(words, env={**os.environ, "JAVA_HOME": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == SparkMissing.exit_code and "Traceback" not in done.stderr
    assert done.stderr.endswith(
        f"Spark needs Java 17 or later, and JAVA_HOME is {tmp_path}, where Java was not found\n"
    )


@pytest.mark.parametrize(
    "options, code, said",
    [
        ("-XX:+NoSuchThing", 7, "Java does not start with `spark.java_options` = '-XX:+NoSuchThing': Unrecognized VM"),
        ("-Da=b --nonsense", 7, "Unrecognized option: --nonsense"),
        ("-XX:+UseG1GC -XX:+UseParallelGC", 7, "Multiple garbage collectors selected"),
        ("nonsense", 7, "Could not find or load main class nonsense"),
        ("-Xmx1g", 2, "cannot set the memory; use spark.driver_memory"),
        ("-Da='b", 2, "cannot be read: No closing quotation"),
    ],
)
def test_flags_that_java_does_not_take_are_told_in_a_sentence(
    options: str, code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "journal").mkdir()
    words = [
        "run",
        "land",
        "--journal",
        str(tmp_path),
        "--lake",
        str(tmp_path),
        "--set",
        f"spark.java_options={options}",
    ]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, said in done.output, done.output.count("\n")) == (code, True, 1), done.output


def test_workers_of_the_installed_spark_load_the_package_that_is_compiled_and_not_its_zip(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import py4j
        import pyspark

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [pyspark.__file__, py4j.__file__, sys.executable]})

    files = [row.file for row in spark.range(1, numPartitions=1).mapInArrow(tell, "file string").collect()]
    assert files == [pyspark.__file__, py4j.__file__, sys.executable]
    assert find_python("local[2]") != sys.executable and find_python("spark://127.0.0.1:7077") == sys.executable
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert find_python("local[2]") == sys.executable, "another Spark has a package of its own"


def test_a_class_archive_in_a_folder_with_spaces_is_one_word_of_java(tmp_path: Path) -> None:
    archive = tmp_path / 'a "b" c.jsa'
    options = spark_conf(SparkSettings(class_archive=str(archive)))["spark.driver.extraJavaOptions"]
    assert f"-XX:ArchiveClassesAtExit={archive}" in shlex.split(options)


@pytest.mark.parametrize("text", ["1d", "Infinity", "2", "0g", "1.5g", "1_0g", "-1g", "\u0661g", ""])
def test_a_size_of_memory_that_java_does_not_take_is_refused(text: str) -> None:
    for settings in (SparkSettings(driver_memory=text), SparkSettings(executor_memory=text)):
        with pytest.raises(ConfigInvalid, match="with a unit"):
            build_session(settings)


def test_who_chooses_a_collector_of_java_has_it() -> None:
    check_java_options("-XX:+UseG1GC -Da='b c'", "once")
    flags = spark_conf(SparkSettings(java_options="-XX:+UseG1GC"), "once")["spark.driver.extraJavaOptions"]
    assert "UseSerialGC" not in flags and "TieredStopAtLevel" in flags
    flags = spark_conf(SparkSettings(java_options="-Da=b"), "once")["spark.driver.extraJavaOptions"]
    assert "UseSerialGC" in flags and flags.endswith("-Da=b")
    assert java_flags("", "rounds") == ["-XX:+UseParallelGC"] and java_flags("-XX:+UseZGC", "rounds") == []
    assert java_flags("", "stream") == []


@pytest.mark.parametrize(("master", "partitions"), [("local", 1), ("local[3]", 3), ("local[64,2]", 8), ("yarn", 4)])
def test_a_shuffle_has_a_partition_for_each_core(master: str, partitions: int) -> None:
    assert spark_conf(SparkSettings(master=master))["spark.sql.shuffle.partitions"] == str(partitions)
    given = SparkSettings(master=master, shuffle_partitions=7)
    assert spark_conf(given)["spark.sql.shuffle.partitions"] == "7"
    assert 1 <= int(spark_conf(SparkSettings(master="local[*]"))["spark.sql.shuffle.partitions"]) <= 8


def test_a_short_session_has_room_for_as_much_compiled_code_as_any() -> None:
    def code_bytes(*flags: str) -> int:
        words = [find_java(), *flags, "-XX:+PrintFlagsFinal", "-version"]
        output = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return int(next(line for line in output.splitlines() if " ReservedCodeCacheSize " in line).split()[3])

    assert code_bytes(*java_flags("", "once")) >= code_bytes()


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "godwit_pipelines", "report", "--lake", str(tmp_path), "--page", "/proc/page.html"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (DiskFailed.exit_code, False), done.stderr


def test_a_job_that_runs_on_the_lake_already_is_left_alone(config: Config, tmp_path: Path) -> None:
    words = [
        sys.executable,
        "-m",
        "godwit_pipelines",
        "run",
        "all",
        "--journal",
        str(tmp_path),
        "--lake",
        config.lake.path,
    ]
    (tmp_path / "journal").mkdir()
    with holding(config, ["audit"]):
        done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == LakeBusy.exit_code
    assert f": audit already runs on this lake: process {os.getpid()} on {socket.gethostname()}; " in done.stderr
    with holding(config, ["audit", "land"]):
        pass  # who has ended holds nothing
    other = replace(config, lake=replace(config.lake, checkpoints=str(tmp_path / "elsewhere")))
    with (
        holding(config, ["land"]),
        pytest.raises(LakeBusy, match="^land "),
        holding(other, ["land"]),
    ):
        pass  # the lock is of the lake: other checkpoints would land every row again


def test_a_query_that_another_process_runs_is_told_where_nothing_could_be_locked() -> None:
    text = "Multiple streaming queries are concurrently using file:/lake/_checkpoints/land-messages/offsets. SQLSTATE: XXKST"
    raised = translate(StreamingQueryException(FAILED + text))
    assert isinstance(raised, LakeBusy) and "with file:/lake/_checkpoints/land-messages/offsets, and" in str(raised)


def test_what_nobody_expected_is_not_taken_for_what_a_job_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> str:
        raise ValueError("a mistake of ours")

    monkeypatch.setattr("godwit_pipelines.cli.describe_config", fail)
    done = CliRunner().invoke(main, ["settings"])
    assert done.exit_code == EXIT_UNEXPECTED and "a mistake of ours" in done.output


def test_what_kafka_has_nothing_to_do_with_stays_as_it_is() -> None:
    error = StreamingQueryException(FAILED + "java.lang.OutOfMemoryError: Java heap space")
    assert translate(error) is error


def test_one_broker_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as gone:
        alive, dead = (f"127.0.0.1:{each.getsockname()[1]}" for each in (server, gone))
        gone.close()
        reach(f"{dead}, {alive}")
        with pytest.raises(KafkaFailed, match=dead):
            reach(dead)


@pytest.mark.parametrize("servers", ["", "broker", "broker:", ":9092", "broker:kafka", "broker:70000"])
def test_an_address_that_is_none_is_told(servers: str) -> None:
    with pytest.raises(ConfigInvalid, match="must be HOST:PORT"):
        reach(servers)


@pytest.mark.parametrize(
    "given, left",
    [
        ({}, {"LC_CTYPE": "C.UTF-8"}),
        ({"LC_ALL": "C"}, {"LANG": "C", "LC_CTYPE": "C.UTF-8"}),
        ({"LANG": "de_DE.ISO-8859-1"}, {"LANG": "de_DE.ISO-8859-1", "LC_CTYPE": "C.UTF-8"}),
        ({"LANG": "de_DE.utf8"}, {"LANG": "de_DE.utf8"}),
        ({"LC_ALL": "de_DE.UTF-8"}, {"LANG": "de_DE.UTF-8", "LC_CTYPE": "de_DE.UTF-8"}),
        ({"LANG": "de_DE.UTF-8", "LC_MESSAGES": "fr_FR"}, {"LANG": "de_DE.UTF-8"}),
    ],
)
def test_java_speaks_of_files_in_the_words_that_are_looked_for(given: dict[str, str], left: dict[str, str]) -> None:
    ask_for_plain_messages(given)
    assert given == {**left, "LC_MESSAGES": "C"}


class Page(BaseHTTPRequestHandler):
    """A master's page; what it says is the server's to change."""

    said = b""

    def do_GET(self) -> None:
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + self.said if self.said else b"no HTTP\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing to the terminal."""


@pytest.fixture
def answering() -> Iterator[int]:
    """The port of one."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_a_master_whose_port_answers_before_its_page_is_there_is_waited_for(
    answering: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path, 7077, answering, 1, "1g")
    for said, workers in ((b"", -1), (b"<html>", -1), (b"[]", -1), (b"{}", -1), (b'{"aliveworkers": 2}', 2)):
        monkeypatch.setattr(Page, "said", said)
        assert cluster.alive() == workers, said


def test_a_part_of_a_cluster_that_ends_while_it_starts_is_named(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, free_port(), free_port(), 1, "1g")
    cluster.workers = [subprocess.Popen(["sleep", "60"], start_new_session=True), subprocess.Popen(["false"])]
    cluster.workers[1].wait()
    with pytest.raises(PipelineError, match=rf"{tmp_path}/worker-2\.log"):
        cluster.wait_for(2)
    cluster.stop()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.session.timeZone", "Europe/Berlin"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.files.ignoreCorruptFiles", "true"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
    ],
)
def test_settings_with_which_rows_are_lost_in_silence_are_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigInvalid, match=f"{key}={value}"):
        check_conf({key: value})
    check_conf({key: {"Europe/Berlin": "UTC", "false": "true", "true": "false"}[value], "spark.task.maxFailures": "2"})
