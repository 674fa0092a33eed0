"""A streaming job is killed at random moments, again and again: its tables equal the journal all the same, row for row."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from godwit_pipelines.cluster import free_port, running_cluster
from godwit_pipelines.delta.table_files import live_files
from godwit_pipelines.errors import EXIT_STOPPED, STOPPED
from tests.pipelines.driven import kill, run, start
from tests.pipelines.journals import JournalWriter, message

KILLS = 20
WAIT_S = 240


def write_journal(data: Path, count: int, batch: int = 500) -> JournalWriter:
    """Many small batches: so that there is much to be killed in."""
    writer = JournalWriter(data)
    for first in range(0, count, batch):
        writer.write([message(offset) for offset in range(first, min(count, first + batch))])
        if first and first % (count // 4) < batch:
            writer.seal()
    return writer


def count_rows(lake: Path) -> int:
    """By the table's log alone: who waits for a job leaves it the machine."""
    path = str(lake / "bronze" / "messages")
    return sum(file["num_records"] for file in live_files(path)) if DeltaTable.is_deltatable(path) else 0


def expected(data: Path, count: int) -> pa.Table:
    writer = JournalWriter(data / "expected")
    return pa.Table.from_batches([writer.batch([message(offset) for offset in range(count)])])


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for what a running command brings about."""
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def assert_equal(lake: Path, data: Path, count: int) -> None:
    table = DeltaTable(str(lake / "bronze" / "messages")).to_pyarrow_table()
    landed = table.drop_columns(["date"]).sort_by("journal_offset")
    assert landed.column("journal_offset").to_pylist() == list(range(count))
    wanted = expected(data, count)
    assert landed.select(wanted.schema.names).cast(wanted.schema).equals(wanted)


def group_lives(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.long
def test_tables_equal_the_journal_after_a_job_was_killed_20_times(tmp_path: Path) -> None:
    chance, count = random.Random(20), 24_000
    write_journal(tmp_path / "node", count).close()
    lake, log = tmp_path / "lake", tmp_path / "log"
    words = ("run", "land", "--journal", str(tmp_path / "node"), "--lake", str(lake), "--master", "local[2]")
    words = (*words, "--set", "journal.rows_per_batch=400", "--option", "streams=messages")
    killed_in_work = 0
    for _ in range(KILLS):
        before = count_rows(lake)
        process = start(*words, "--every", "0s", log=log)
        deadline = time.monotonic() + WAIT_S
        while before < count and count_rows(lake) == before and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)  # until it works again; then somewhere in the batches that follow
        time.sleep(chance.uniform(0, 1.0))
        assert process.poll() is None, log.read_text()
        killed_in_work += before < count_rows(lake)
        kill(process)
    assert run(*words, "--once", log=log) == 0, log.read_text()
    assert_equal(lake, tmp_path, count)
    assert killed_in_work >= 3
    assert run("run", "reconcile", "--journal", str(tmp_path / "node"), "--lake", str(lake), log=log) == 0


@pytest.mark.long
def test_a_worker_of_a_cluster_is_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    count = 60_000
    write_journal(tmp_path / "node", count, batch=5000).close()
    lake, log = tmp_path / "lake", tmp_path / "log"
    with running_cluster(tmp_path / "cluster", workers=2, memory="1g") as cluster:
        words = ("run", "land", "--journal", str(tmp_path / "node"), "--lake", str(lake), "--master", cluster.url)
        words = (*words, "--set", "journal.rows_per_batch=3000", "--set", "journal.rows_per_task=500")
        words = (*words, "--set", "spark.executor_memory=512m", "--option", "streams=messages", "--once")
        process = start(*words, log=log)
        try:
            wait_until(lambda: count_rows(lake) > 0, process, log)
            kill(cluster.workers[0])
            assert process.wait(WAIT_S) == 0, log.read_text()
        finally:
            kill(process)
    assert_equal(lake, tmp_path, count)


@pytest.mark.long
def test_a_cluster_without_workers_is_told_and_so_is_one_that_comes(tmp_path: Path) -> None:
    write_journal(tmp_path / "node", 600).close()
    lake, log = tmp_path / "lake", tmp_path / "log"
    with running_cluster(tmp_path / "cluster", workers=0, memory="1g") as cluster:
        words = ("run", "land", "--journal", str(tmp_path / "node"), "--lake", str(lake), "--master", cluster.url)
        process = start(*words, "--every", "1s", "--option", "streams=messages", log=log)
        try:
            wait_until(lambda: "has had no executor" in log.read_text(), process, log)
            worker = cluster.start_worker()
            wait_until(lambda: count_rows(lake) == 600, process, log)
            wait_until(lambda: "an executor is available again" in log.read_text(), process, log)
            kill(worker)
            wait_until(lambda: log.read_text().count("has had no executor") == 2, process, log)
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0, log.read_text()
        finally:
            kill(process)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cluster_that_is_asked_to_stop_leaves_nothing_behind(number: int, tmp_path: Path) -> None:
    log, port = tmp_path / "log", free_port()
    process = start("cluster", "--port", str(port), "--page", "0", "--folder", str(tmp_path / "cluster"), log=log)
    try:
        wait_until(lambda: "master=" in log.read_text(), process, log)
        children = list_below(process.pid)
        assert len(children) == 3, log.read_text()
        process.send_signal(number)
        assert process.wait(WAIT_S) == 0, log.read_text()
    finally:
        kill(process)
    assert log.read_text().startswith(f"master=spark://127.0.0.1:{port} ") and log.read_text().count("\n") == 1
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def list_below(process: int) -> list[int]:
    """The children of a process."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=True)
    return [int(child) for child in listed.stdout.split()]


@pytest.mark.long
@pytest.mark.parametrize(
    "way, number, is_for_all, code",
    [
        ("--every=200ms", signal.SIGINT, False, 0),
        ("--every=200ms", signal.SIGTERM, True, 0),
        ("--once", signal.SIGTERM, False, EXIT_STOPPED),
        ("--once", signal.SIGINT, True, EXIT_STOPPED),
    ],
)
def test_a_job_that_is_asked_to_stop_ends_in_order_and_goes_on_from_there(
    way: str, number: int, is_for_all: bool, code: int, tmp_path: Path
) -> None:
    """`is_for_all`: Java and the workers receive the signal, too, as by ^C, systemd and `timeout`."""
    count = 6_000
    write_journal(tmp_path / "node", count).close()
    lake, log = tmp_path / "lake", tmp_path / "log"
    words = ("run", "land", "--journal", str(tmp_path / "node"), "--lake", str(lake), "--master", "local[2]")
    words = (*words, "--set", "journal.rows_per_batch=400", "--option", "streams=messages")
    process = start(*words, way, log=log)
    try:
        wait_until(lambda: count_rows(lake) > 0, process, log)
        (os.killpg if is_for_all else os.kill)(process.pid, number)
        assert process.wait(WAIT_S) == code, log.read_text()
    finally:
        kill(process)
    assert 0 < count_rows(lake) < count
    assert not re.search("Aborted|Traceback|Error", log.read_text()), log.read_text()
    if code == EXIT_STOPPED:
        assert log.read_text() == f"{STOPPED}\n"
    assert run(*words, log=log) == 0, log.read_text()
    assert_equal(lake, tmp_path, count)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_job_that_is_stopped_while_spark_starts_says_so_in_a_line(number: int, tmp_path: Path) -> None:
    write_journal(tmp_path / "node", 10).close()
    log = tmp_path / "log"
    process = start("run", "land", "--journal", str(tmp_path / "node"), "--lake", str(tmp_path / "lake"), log=log)
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while process.poll() is None and not children.read_text():
            pass
        process.send_signal(number)
        assert process.wait(WAIT_S) == EXIT_STOPPED, log.read_text()
        deadline = time.monotonic() + WAIT_S
        while group_lives(process.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not group_lives(process.pid), "Java goes on without anybody"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert log.read_text() == f"{STOPPED}\n"
