"""The command `godwit-pipelines`: runs jobs, lists them, shows tables.

Owns what a person types and reads. Invalid arguments are reported before Spark starts. errors.py has the exit codes, and a job that found
a problem exits with code 1; terminal/ turns errors into exit codes.
"""

from __future__ import annotations

import difflib
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from . import __version__
from .config import describe_config, find_lake, load_config
from .errors import (
    EXIT_FOUND,
    STOPPED,
    ConfigInvalid,
    PipelineError,
    TableMissing,
)
from .jobs import JOBS, Job, Outcome, Run
from .jobs.options import seconds_of, spell
from .settings import Config
from .stopping import Stopping
from .tables import TABLES
from .tables.pages import write_pages
from .terminal.commands import Commands
from .terminal.parameters import Count, LocalPath, Number
from .words import counted, sentences

if TYPE_CHECKING:
    from .metrics import Figures
    from .session import Life

_SETTINGS = [
    click.option("--config", "file", type=LocalPath(dir_okay=False), help="Read settings from this TOML file."),
    click.option("--lake", help="Folder of the tables. Sets lake.path."),
    click.option("--master", help="local[N], or spark://HOST:PORT of a cluster. Sets spark.master."),
    click.option(
        "--set", "more", multiple=True, metavar="SECTION.NAME=VALUE", help="Set any other setting. Repeatable."
    ),
]


def settings(command: Any) -> Any:
    """The options of every command that needs a configuration."""
    for option in reversed(_SETTINGS):
        command = option(command)
    return command


def read_config(file: Path | None, more: tuple[str, ...], **flags: str | None) -> Config:
    given = {key.replace("__", "."): value for key, value in flags.items() if value}
    for each in more:
        key, equals, value = each.partition("=")
        if not equals:
            raise ConfigInvalid("--set", each, "must be SECTION.NAME=VALUE")
        given[key] = value
    return load_config(file, os.environ, given)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="godwit-pipelines")
def main() -> None:
    """Load the journals of Godwit nodes into Delta tables, and check and analyze them."""


@main.command()
@click.argument("job")
@settings
@click.option(
    "--journal",
    multiple=True,
    metavar="DATA",
    help="Read the journal of the node with this data directory (or glob). Repeatable.",
)
@click.option("--once", is_flag=True, help="Process all available data, then exit (the default).")
@click.option("--every", metavar="TIME", help="Run continuously, with this interval: 10s, 500ms, 5m.")
@click.option(
    "--rebuild", "is_rebuilt", is_flag=True, help="Remove the job's tables and fill them again from the first row."
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set an option of the job; `list` shows them. Repeatable.",
)
def run(
    job: str,
    file: Path | None,
    lake: str | None,
    master: str | None,
    more: tuple[str, ...],
    journal: tuple[str, ...],
    once: bool,
    every: str | None,
    is_rebuilt: bool,
    options: tuple[str, ...],
) -> None:
    """Run JOB once, or continuously with --every."""
    found = find_job(job)
    if once and every:
        raise ConfigInvalid("--every", every, "cannot be combined with --once")
    every_s = parse_time(every) if every else None
    config = read_config(file, more, journal__paths=",".join(journal), lake__path=lake, spark__master=master)
    parsed = parse_options(found, options)
    if is_rebuilt:
        from .jobs.rebuilding import check_rebuild

        check_rebuild(found)
    check_journals(found, config)
    if every_s is None and found.reads_tables_alone:
        find_lake(config)  # a job with --every waits until another job creates its tables
    elif every_s is None:
        from .source.parts import check_paths

        check_paths(config.journal.paths)  # nor does it wait for a node
    outcome = run_job(found, config, every_s, parsed, is_rebuilt=is_rebuilt)
    if outcome.text:
        click.echo(sentences(outcome.text))
    if outcome.found:
        sys.exit(EXIT_FOUND)


def check_journals(job: Job, config: Config) -> None:
    """Raises ConfigInvalid if a job has no journal to read, and no Kafka topic in its place."""
    if not job.needs_journals or config.journal.paths or (job.takes_kafka and config.kafka.topics):
        return
    why = f": {job.name} reads no topics of Kafka" if config.kafka.topics else ""
    raise ConfigInvalid("journal.paths", "", f"must name a node's data directory{why}", hint="--journal DATA")


def run_job(
    job: Job, config: Config, every_s: float | None, options: dict[str, str], *, is_rebuilt: bool = False
) -> Outcome:
    """Start Spark, run the job, stop Spark. After SIGINT or SIGTERM a continuous job ends after its batch, any other job at once."""
    from .jobs.rebuilding import prepare_tables
    from .lake import Lake, holding
    from .metrics import Figures, serving
    from .progress import say, translate, wait_all, watcher
    from .quiet import hush, quiet_start
    from .reach import watching_executors
    from .session import build_session
    from .source.kafka import connector_jars

    console = Console(stderr=True, emoji=False)
    stop = Stopping()
    jars = {"spark.jars": connector_jars(config.kafka.jars)} if config.kafka.jars else {}
    figures = Figures(Path(config.metrics.file) if config.metrics.file else None)
    late: dict[str, int] = {}
    writing = [name for name in (job.name, *job.parts) if any(each in TABLES for each in JOBS[name].writes)]
    with holding(config, writing), serving(figures, config.metrics.address):
        with console.status("starting Spark"), quiet_start(), stop.starting():
            spark = build_session(config.spark, name=f"godwit {job.name}", life=life_of(job, every_s), extra=jars)
        try:
            stop.listen(goes_on=every_s is not None)
            spark.streams.addListener(figures)
            given = Run(
                spark=spark,
                config=config,
                lake=Lake(spark, config),
                every_s=every_s,
                job=job.name,
                options=options,
                say=lambda text: say(console, sentences(text)),
                watch=watcher(console, late, stop.is_asked),
                is_asked=stop.is_asked,
            )
            figures.warn = given.say
            prepare_tables(given, job, [JOBS[name] for name in writing], JOBS.values() if is_rebuilt else ())
            if every_s is not None:
                figures.say = given.say
            with watching_executors(spark, given.say):
                outcome = run_rounds(job, given, stop, figures) if job.kind == "batch" else job.run(given) or Outcome()
                if job.kind == "stream" and every_s is not None:
                    given.say(f"{job.name}: {_queries(len(given.queries))} every {every_s:g} s; stop with ^C")
                    # a source that ends with its query says so in a trace: hush
                    wait_all(given.queries, stop.is_asked, hush, given.check_places)
            return replace(outcome, found=outcome.found + sum(late.values()))
        except PipelineError:
            raise
        except Exception as error:
            if stop.has_ended_java(spark):
                click.echo(STOPPED, err=True)
                return Outcome()
            raised = translate(error)
            if isinstance(raised, PipelineError):
                raise raised from error
            raise
        finally:
            stop.end(spark)


def life_of(job: Job, every_s: float | None) -> Life:
    """The kind of session that a job needs."""
    if every_s is None:
        return "once"
    return "rounds" if job.kind == "batch" else "stream"


def run_rounds(job: Job, given: Run, stop: Stopping, figures: Figures) -> Outcome:
    """Run a batch job once, or in rounds. A continuous run prints the result of each round; the last one decides the exit code."""
    while True:
        began = time.monotonic()
        outcome = job.run(given) or Outcome()
        figures.take_round(job.name, outcome.found, time.monotonic() - began)
        if given.every_s is None:
            return outcome
        if outcome.text:
            click.echo(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {job.name}: {sentences(outcome.text)}")
        if stop.wait(given.every_s):
            return replace(outcome, text="")


def _queries(count: int) -> str:
    return f"{counted(count, 'query', 'queries')} {'runs' if count == 1 else 'run'}"


def find_job(name: str) -> Job:
    if name not in JOBS:
        raise ConfigInvalid(
            "job", name, f"is not a valid job: expected one of {', '.join(JOBS)}", hint=guess(name, JOBS)
        )
    return JOBS[name]


def guess(name: str, among: Iterable[str]) -> str:
    """A hint with the nearest known name, if one is near."""
    near = difflib.get_close_matches(name, list(among), n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else ""


def parse_options(job: Job, given: tuple[str, ...]) -> dict[str, str]:
    options: dict[str, str] = {}
    for each in given:
        name, _, value = each.partition("=")
        if name not in job.options:
            takes = ", ".join(job.options) or "none"
            raise ConfigInvalid(
                "--option", each, f"is not an option of {job.name}: expected {takes}", hint=guess(name, job.options)
            )
        options[name] = value
    job.check(options)
    return options


def parse_time(text: str) -> float:
    """`10s`, `500ms`, `5m`, `1h`, or seconds."""
    seconds = seconds_of(spell(f"{text}s" if text[-1:].isdigit() else text))
    if seconds is None or seconds > 86_400:
        raise ConfigInvalid("--every", text, "must be a duration of at most a day, such as 10s, 500ms or 5m")
    return seconds


@main.command("list")
@click.option("--tables", is_flag=True, help="List the tables instead of the jobs.")
@click.option(
    "--write",
    type=LocalPath(file_okay=False),
    help="Write the reference pages of the tables into this folder.",
)
def list_jobs(tables: bool, write: Path | None) -> None:
    """List the jobs with what they read and write and their options, or the tables."""
    if write is not None:
        write_pages(write)
        return
    from .showing import list_downwards

    if tables:
        for table in TABLES.values():
            facts = {"written by": table.job, "key": ", ".join(table.key)}
            list_downwards(Console(emoji=False), table.name, table.about, facts)
        return
    for job in JOBS.values():
        facts = {"kind": job.kind, "reads": ", ".join(job.reads), "writes": ", ".join(job.writes)}
        facts |= {f"--option {name}": about for name, about in job.options.items()}
        list_downwards(Console(emoji=False), job.name, job.about, facts)


@main.command()
@click.argument("table")
@settings
@click.option("--rows", default=20, show_default=True, type=Count(1, 10_000), help="Number of rows, newest first.")
@click.option(
    "--where", default="", help="Show only rows that match this SQL condition: \"subject = '/rooms/kitchen'\"."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def show(
    table: str,
    file: Path | None,
    lake: str | None,
    master: str | None,
    more: tuple[str, ...],
    rows: int,
    where: str,
    as_json: bool,
) -> None:
    """Show the newest rows of TABLE."""
    from .showing import show_table

    if table not in TABLES:
        hint = " ".join(filter(None, (guess(table, TABLES), "`list --tables` lists all tables")))
        raise TableMissing(f"{table!r} is not a table; {hint}")
    config = read_config(file, more, lake__path=lake, spark__master=master)
    show_table(TABLES[table], config, Console(emoji=False), rows, where, as_json)


@main.command()
@settings
@click.option(
    "--page",
    default="report.html",
    show_default=True,
    type=LocalPath(),
    help="Write the page to this file.",
)
@click.option("--json", "data", type=LocalPath(), help="Also write the data of the page as JSON.")
@click.option("--hours", default=24.0, show_default=True, type=Number(0.01, 24 * 366), help="Report on the last hours.")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser, if there is a desktop.")
def report(
    file: Path | None,
    lake: str | None,
    master: str | None,
    more: tuple[str, ...],
    page: Path,
    data: Path | None,
    hours: float,
    is_opened: bool,
) -> None:
    """Write a self-contained HTML page about the last day."""
    from .report.command import open_page, write_report

    click.echo(write_report(read_config(file, more, lake__path=lake, spark__master=master), page, data, hours))
    if is_opened:
        open_page(page)


@main.command("settings")
def settings_page() -> None:
    """Print every setting with its default, bounds and meaning, as Markdown."""
    click.echo(describe_config())


@main.command()
@click.option("--workers", default=2, show_default=True, type=Count(1, 64), help="Number of workers.")
@click.option("--cores", default=1, show_default=True, type=Count(1, 256), help="Cores of each worker.")
@click.option("--memory", default="2g", show_default=True, help="Memory of each worker.")
@click.option("--port", default=7077, show_default=True, type=Count(), help="Port of the master; 0 chooses one.")
@click.option("--page", default=8090, show_default=True, type=Count(), help="Port of the master's page; 0 chooses one.")
@click.option(
    "--folder",
    default="spark-cluster",
    show_default=True,
    type=LocalPath(),
    help="Folder for logs and work files.",
)
def cluster(workers: int, cores: int, memory: str, port: int, page: int, folder: Path) -> None:
    """Run a Spark cluster on this machine until ^C."""
    from .cluster import running_cluster

    stop = Stopping(ending=b"")  # no batch is at work
    with running_cluster(folder, workers=workers, cores=cores, memory=memory, port=port, page=page) as running:
        stop.listen(goes_on=True)
        click.echo(f"master={running.url} page={running.page_url} workers={running.alive()}")
        while not stop.wait(1.0):
            running.check()
