"""The command without Spark: mistakes are reported at once, in one sentence, with their exit code."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner, Result
from pyspark.errors import StreamingQueryException
from rich.console import Console

from godwit_pipelines import progress
from godwit_pipelines.cli import life_of, main, parse_time, run_rounds
from godwit_pipelines.errors import EXIT_STOPPED, STOPPED, ConfigInvalid, DiskFailed
from godwit_pipelines.jobs import JOBS, Outcome, Run
from godwit_pipelines.metrics import Figures
from godwit_pipelines.stopping import Stopping
from godwit_pipelines.tables import TABLES
from godwit_pipelines.words import counted
from tests.pipelines.test_delta import write


def call(*words: str) -> Result:
    return CliRunner().invoke(main, words, env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"})


@pytest.mark.parametrize(
    "words, code, said",
    [
        (("run", "lnd"), 2, "did you mean land?"),
        (("run", "land", "--every", "soon"), 2, "must be a duration"),
        (("run", "land", "--once", "--every", "1s"), 2, "cannot be combined with --once"),
        (("run", "land", "--option", "stream=x"), 2, "did you mean streams?"),
        (
            ("run", "land", "--option", "streams="),
            2,
            "--option streams: '' is not a stream: expected one of messages, access",
        ),
        (("run", "land", "--option", "streams=messages,mesages"), 2, "--option streams: 'mesages' is not a stream"),
        (("run", "land"), 2, "journal.paths: '' must name a node's data directory; --journal DATA"),
        (("run", "reconcile", "--every", "1h"), 2, "journal.paths: '' must name a node's data directory"),
        (
            ("run", "ohlc", "--set", "kafka.servers=127.0.0.1:9", "--set", "kafka.topics=rooms"),
            2,
            "journal.paths: '' must name a node's data directory: ohlc reads no topics of Kafka; --journal DATA",
        ),
        (("run", "ohlc", "--option", "table=maybe"), 2, "--option table: 'maybe' must be yes or no"),
        (("run", "ohlc", "--option", "table=no"), 2, "needs --option publish, else there is nothing to do"),
        (("run", "ohlc", "--option", "field=price"), 2, "--option field: 'price' must be a JSON path"),
        (("run", "maintain", "--option", "table="), 2, "--option table: '' is not a table"),
        (("run", "replay"), 2, "must name a subject or pattern"),
        (("run", "replay", "--option", "subjects=orders/**"), 2, "did you mean /orders/**?"),
        (("run", "replay", "--option", "subjects=/a", "--option", "below=again"), 2, "did you mean /again?"),
        (("run", "replay", "--option", "subjects=/a", "--option", "below=/again/"), 2, "did you mean /again?"),
        (("run", "replay", "--option", "subjects=/a", "--option", "rate=fast"), 2, "a number from 0"),
        (("run", "replay", "--option", "subjects=/a", "--option", "rate=Infinity"), 2, "a number from 0"),
        (("run", "replay", "--lake", "s3://bucket/lake", "--option", "subjects=/a"), 2, "not a local path"),
        (("run", "replay", "--option", "subjects=/a", "--option", "publish=yes"), 2, "must name the replay"),
        (
            ("run", "replay", "--option", "subjects=/a", "--option", "since=yesterday"),
            2,
            "--option since: 'yesterday' must be",
        ),
        (
            ("run", "replay", "--option", "subjects=/a", "--option", "until=2026-13-01"),
            2,
            "--option until: '2026-13-01'",
        ),
        (
            ("run", "audit", "--option", "since=25:00"),
            2,
            "must be a date or a time in UTC, or a duration before now; 2026-11-21 10:00, or 24h",
        ),
        (("run", "audit", "--option", "since=\u0661s"), 2, "--option since: '\u0661s' must be"),
        (("run", "land", "--journal", ".", "--every", "\u0661s"), 2, "must be a duration"),
        (("report", "--hours", "nan"), 2, "'nan' is not a number"),
        (("report", "--hours", "1_0"), 2, "'1_0' is not a number"),
        (("show", "bronze.runs", "--rows", "1_0"), 2, "'1_0' is not a whole number"),
        (("show", "bronze.runs", "--rows", "\u0661"), 2, "'\u0661' is not a whole number"),
        (("cluster", "--port", "7_077"), 2, "is not a whole number"),
        (("cluster", "--memory", "nan"), 2, "--memory: 'nan' must be a whole number with a unit"),
        (("show", "bronze.runs", "--config", "s3://bucket/x"), 2, "--config: 's3://bucket/x' is not a local path"),
        (("report", "--page", "s3://bucket/x"), 2, "--page: 's3://bucket/x' is not a local path"),
        (("report", "--json", "hdfs://n/x"), 2, "--json: 'hdfs://n/x' is not a local path"),
        (("list", "--write", "file://host/x"), 2, "--write: 'file://host/x' is not a local path"),
        (("cluster", "--folder", "gs://bucket/x"), 2, "--folder: 'gs://bucket/x' is not a local path"),
        (("run", "audit", "--option", "since=400 days"), 2, "--option since: '400 days' must be a date"),
        (("run", "ohlc", "--option", "publish=bars/1s"), 2, "did you mean /bars/1s?"),
        (("run", "ohlc", "--option", "publish=/bars/*"), 2, "has a wildcard"),
        (("run", "ohlc", "--option", "publish=/$bars"), 2, "is reserved for the node"),
        (("run", "ohlc", "--option", "subjects=stocks/"), 2, "does not begin with a slash"),
        (("run", "ohlc", "--option", "subjects=/stocks/**"), 2, "not a pattern"),
        (
            ("run", "ohlc", "--option", "width=1 parsec"),
            2,
            "'1 parsec' must be a duration of at most 366 days; 1 second",
        ),
        (("run", "ohlc", "--option", "width=0 seconds"), 2, "--option width: '0 seconds'"),
        (("run", "ohlc", "--option", "width=1 month"), 2, "--option width: '1 month'"),
        (("run", "ohlc", "--option", "late=-1 second"), 2, "--option late: '-1 second'"),
        (("run", "capacity", "--option", "connections=-5"), 2, "must be a whole number from 0 to 1,000,000,000"),
        (("run", "capacity", "--option", "connections=abc"), 2, "--option connections: 'abc' must be a whole number"),
        (("run", "capacity", "--option", "connections=5"), 2, "--option deliveries: '' must be given with connections"),
        (("run", "capacity", "--option", "deliveries=5"), 2, "--option connections: '' must be given with deliveries"),
        (
            ("run", "capacity", "--option", "cores=8"),
            2,
            "--option connections and --option deliveries: '' must be given with cores",
        ),
        (("run", "capacity", "--option", "cores=-1"), 2, "--option cores: '-1' must be a number from 0.01"),
        (("run", "capacity", "--option", "memory_gb=nan"), 2, "--option memory_gb: 'nan' must be"),
        (
            ("run", "delivery", "--option", "objective=2"),
            2,
            "--option objective: '2' must be a number from 0 to 0.999999",
        ),
        (("run", "delivery", "--option", "target_us=0"), 2, "--option target_us: '0' must be a whole number from 1"),
        (("run", "maintain", "--option", "table=bronze"), 2, "is not a table"),
        (("run", "maintain", "--option", "erase="), 2, "must name an identity, client, address or recipient"),
        (("run", "maintain", "--option", "alone=y"), 2, "must be yes or no"),
        (("run", "land", "--set", "lake.pth=x"), 2, "did you mean lake.path?"),
        (("run", "land", "--set", "lake"), 2, "SECTION.NAME=VALUE"),
        (("run", "land", "--config", "none.toml"), 2, "cannot be read"),
        (("show", "bronze.mesages"), 4, "did you mean bronze.messages?"),
        (("show", "%"), 4, "'%' is not a table; `list --tables` lists all tables"),
        (("run", "%"), 2, "capacity, ohlc, replay, maintain"),
        (
            ("show", "ops.erasures", "--lake", "none"),
            4,
            "`godwit-pipelines run maintain --option erase=IDENTITY` writes it",
        ),
        (("show", "bronze.messages", "--lake", "none"), 4, "`godwit-pipelines run land` writes it"),
        (("report", "--lake", "none"), 4, "run `godwit-pipelines run all` to create it"),
        (("run", "audit", "--lake", "none"), 4, "run `godwit-pipelines run all` to create it"),
        (("run", "land", "--journal", "none-*"), 3, "none-* matches no data directory of a node"),
        (("run", "all", "--once", "--journal", "none"), 3, "none is not the data directory of a node"),
        (
            ("run", "land", "--journal", "/proc/self"),
            3,
            "/proc/self is not the data directory of a node: it",
        ),
        (("run", "maintain", "--option", "erase=kim", "--lake", "none"), 4, "none does not exist"),
    ],
)
def test_a_mistake_is_told_in_a_sentence_with_its_code_before_spark_starts(
    words: tuple[str, ...], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("godwit_pipelines.session.build_session", lambda *_, **__: pytest.fail("Spark was started"))
    result = call(*words)
    assert (result.exit_code, said in result.output) == (code, True), result.output
    assert "Traceback" not in result.output


def test_a_cluster_takes_no_port_that_somebody_has(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for key in ("--port", "--page"):
            words = ("--port", "0", "--page", "0", key, str(taken.getsockname()[1]), "--folder", str(tmp_path))
            result = call("cluster", *words)
            assert result.exit_code == 2 and f"godwit-pipelines: {key}: " in result.output, result.output
            assert "in use" in result.output and "0 chooses one" in result.output
    assert call("cluster", "--port", "70000").exit_code == 2
    assert not list(tmp_path.iterdir()), "nothing was started"


def test_who_interrupts_the_command_while_it_loads_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, types\n"
        "class Slow(types.ModuleType):\n"
        "    def __getattr__(self, name): raise KeyboardInterrupt\n"
        "sys.modules['godwit_pipelines.cli'] = Slow('godwit_pipelines.cli')\n"
    )
    command = [sys.executable, "-m", "godwit_pipelines", "list"]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (EXIT_STOPPED, "", f"{STOPPED}\n")


def test_an_interrupted_command_does_not_mind_that_java_is_gone(recwarn: pytest.WarningsRecorder) -> None:
    class Gone:
        def stop(self) -> None:
            # as Spark does where Java is on its way out
            warnings.warn("unable to shut down", RuntimeWarning, stacklevel=1)
            raise ConnectionRefusedError

    stop = Stopping()
    with pytest.raises(ConnectionRefusedError):
        stop.end(Gone())
    assert len(recwarn) == 1
    stop.interrupted = True
    stop.end(Gone())
    assert len(recwarn) == 1


def test_who_asks_twice_does_not_wait_for_the_batch(capfd: pytest.CaptureFixture[str]) -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    stop = Stopping()
    try:
        stop.listen(goes_on=True)
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_asked() and stop.wait(60)
        assert capfd.readouterr().err == "godwit-pipelines: ends after the batch at work; ^C again ends it at once\n"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class Hung:
    """A query that waits for executors which do not come."""

    isActive, lastProgress = True, None
    status: ClassVar = {"isTriggerActive": True}

    def stop(self) -> None:
        self.isActive = False


def test_queries_on_a_cluster_that_is_gone_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0, 0.05)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda _: next(clock)))
    queries: list[Any] = [Hung() for _ in range(7)]
    active: list[int] = []
    progress.wait_all(queries, lambda: True, lambda: active.append(sum(query.isActive for query in queries)))
    assert active == [7] and not any(query.isActive for query in queries)
    assert next(clock) < 60, "the unit's TimeoutStopSec"


def test_a_query_that_ends_by_itself_ends_before_that_where_somebody_asks(capfd: pytest.CaptureFixture[str]) -> None:
    class Long(Hung):
        name, recentProgress, status = "land-messages", (), {"isTriggerActive": False}  # type: ignore[misc]  # as the class above

        def awaitTermination(self, seconds: float) -> bool:
            return not self.isActive

        def exception(self) -> None:
            return None

    query: Any = Long()
    progress.watcher(Console(), {}, lambda: True)(query)
    assert not query.isActive and "land-messages: 0 rows in 0.0 s" in capfd.readouterr().out


class Failing(Hung):
    """A query whose last batch fails while it is asked to stop."""

    isActive = False

    def exception(self) -> StreamingQueryException:
        return StreamingQueryException("java.io.IOException: No space left on device")


def test_a_last_batch_that_fails_is_told_once_all_have_stopped() -> None:
    queries: list[Any] = [Failing(), Hung()]
    queries[1].status = {"isTriggerActive": False}
    with pytest.raises(DiskFailed, match="No space left"):
        progress.wait_all(queries, lambda: True, lambda: None)
    assert not queries[1].isActive


@pytest.mark.parametrize("count, said", [(0, "0 nodes"), (1, "1 node"), (2_000, "2,000 nodes")])
def test_one_is_not_told_as_many(count: int, said: str) -> None:
    assert counted(count, "node") == said
    assert counted(count, "query", "queries").endswith("query" if count == 1 else "queries")


def test_jobs_and_tables_are_listed() -> None:
    listed = call("list")
    assert listed.exit_code == 0 and all(name in listed.output for name in JOBS)
    assert "  writes gold.ohlc, subjects\n  --option field JSON path" in listed.output
    assert all(name in call("list", "--tables").output for name in TABLES)
    narrow = CliRunner().invoke(main, ["list"], env={"COLUMNS": "60"}).output
    assert max(map(len, narrow.splitlines())) <= 60 and all(
        name in narrow for job in JOBS.values() for name in job.writes
    )
    assert "| `lake.path` | `lake` |" in call("settings").output


def test_rows_of_a_table_are_shown_for_people_and_for_programs(tmp_path: Path) -> None:
    write(tmp_path / "bronze" / "messages", range(30))
    lake = ("--lake", str(tmp_path))
    shown = call("show", "bronze.messages", *lake, "--rows", "2")
    assert shown.exit_code == 0 and "2 of 30 rows" in shown.output and "/rooms/9" in shown.output
    lines = call("show", "bronze.messages", *lake, "--json", "--where", "`journal_offset` < 3").output.splitlines()
    assert sorted(json.loads(line)["journal_offset"] for line in lines) == [0, 1, 2]
    wrong = call("show", "bronze.messages", *lake, "--where", "nothing = 1")
    assert wrong.exit_code == 2 and "is not a valid condition" in wrong.output
    half = call("show", "bronze.messages", *lake, "--where", "subject =")
    assert half.exit_code == 2 and "BY" not in half.output, (
        "the error is about the condition, not about the words after it"
    )
    words = ["show", "bronze.messages", *lake, "--rows", "2"]
    narrow = CliRunner().invoke(main, words, env={"COLUMNS": "60"}).output
    assert len(narrow.split("\n\n")) == 3, "a line between two rows"


def test_a_table_that_was_damaged_is_told_as_that(tmp_path: Path) -> None:
    write(tmp_path / "bronze" / "messages", range(30))
    for file in (tmp_path / "bronze" / "messages").rglob("*.parquet"):
        file.write_text("rubbish")
    result = call("show", "bronze.messages", "--lake", str(tmp_path))
    assert (result.exit_code, "bronze.messages cannot be read" in result.output) == (4, True), result.output


def test_times_are_read_with_their_units() -> None:
    assert [parse_time(text) for text in ("10s", "500ms", "5m", "1h", "2", "0.5s")] == [10, 0.5, 300, 3600, 2, 0.5]
    for text in ("", "s", "-1s", "2d", "1e9"):
        with pytest.raises(ConfigInvalid):
            parse_time(text)


def test_a_session_is_for_one_run_or_for_rounds_or_for_queries_that_go_on() -> None:
    asked = (("audit", None), ("land", None), ("audit", 300.0), ("land", 10.0))
    assert [life_of(JOBS[job], every_s) for job, every_s in asked] == ["once", "once", "rounds", "stream"]


def test_every_job_names_tables_that_are_declared() -> None:
    for job in JOBS.values():
        names = [name for name in (*job.reads, *job.writes) if not name.startswith(("journal.", "/", "subjects"))]
        assert all(name in TABLES for name in names), job.name


def test_each_round_of_a_job_that_goes_on_says_what_it_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = iter([Outcome("BROKEN: 2 faults", found=2), Outcome(), Outcome("PROVEN: 5 messages")])
    job = replace(JOBS["audit"], run=lambda run: next(outcomes))
    stop, figures = Stopping(), Figures()
    monkeypatch.setattr(stop, "wait", lambda seconds: figures.rounds["audit"]["job_runs"] == 3)
    nothing: Any = None
    given = Run(nothing, nothing, nothing, every_s=1.0)
    assert run_rounds(job, given, stop, figures) == Outcome(found=0), "what the last one found counts, and is said"
    time_of_day = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    said = rf"{time_of_day} audit: BROKEN: 2 faults\n{time_of_day} audit: PROVEN: 5 messages\n"
    assert re.fullmatch(said, capsys.readouterr().out)
    once = replace(JOBS["audit"], run=lambda run: Outcome("BROKEN", found=2))
    assert run_rounds(once, replace(given, every_s=None), stop, figures) == Outcome("BROKEN", found=2)
    assert figures.rounds["audit"]["problems"] == 2 and capsys.readouterr().out == ""
