"""`run JOB --rebuild`: removes a job's tables and checkpoints, so that it fills them again from the beginning.

Owns that nothing is removed that cannot be filled again, and that an interrupted removal is finished: a file in the lake lists what to
remove before anything is removed, and the job does not run before all of it is gone. Invariant: a table and the checkpoint of its query
both exist, or neither, when the job begins.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..delta.columns import arrow_schema
from ..delta.commits import is_table
from ..delta.log import open_table
from ..delta.table_files import is_there, live_files, path_of
from ..delta.writing import write_rows
from ..errors import ConfigInvalid
from ..lake import Lake
from ..schemas import SCHEMAS
from ..source.parts import Journals
from ..source.runs import Runs
from ..tables import DATE, TABLES
from ..tables.silver import SESSIONS
from ..words import counted
from .erasures import list_unproven
from .job import Job, Run
from .land import named_streams, write_json
from .options import FORGET, is_yes

_MARKERS = "_rebuild"
_QUARANTINE = "bronze.quarantine"


class Removal(NamedTuple):
    """What to remove: tables, the queries that fill them, and the quarantine's rows of some streams."""

    tables: tuple[str, ...]
    queries: tuple[str, ...]
    quarantined: tuple[str, ...] = ()


def check_rebuild(job: Job) -> None:
    """Raises ConfigInvalid for a job that fills no tables of its own."""
    if job.parts or not job.can_rebuild:
        hint = f"rebuild one of {', '.join(job.parts)}" if job.parts else ""
        raise ConfigInvalid("--rebuild", job.name, "has no tables that can be rebuilt", hint=hint)


def prepare_tables(run: Run, job: Job, writing: Iterable[Job], readers: Collection[Job]) -> None:
    """Finish interrupted removals of the jobs that are to run. If `readers` names the jobs that may have read this job's tables, rebuild
    it.
    """
    for each in writing:
        finish_rebuild(run, each)
    if readers:
        rebuild(run, job, [each for each in readers if each is not job])


def rebuild(run: Run, job: Job, others: Iterable[Job]) -> None:
    """Remove what a job has written, and print which others read it. Raises ConfigInvalid if some of it could not be filled again."""
    removal = list_removal(run.lake, job, run.options)
    if run.config.journal.fail_on_data_loss and (gone := list_gone(run, removal)):
        raise ConfigInvalid(
            "--rebuild",
            job.name,
            f"would lose rows that the journals no longer hold: {gone[0]}"
            + f" and {len(gone) - 1} more" * (len(gone) > 1),
            hint="journal.fail_on_data_loss=false removes them anyway",
        )
    if not is_yes(run.options, FORGET, "no") and (days := list_gone_days(run.lake, job, removal)):
        raise ConfigInvalid(
            "--rebuild",
            job.name,
            f"would lose days that the tables it reads no longer have: {days[0]}"
            + f" and {len(days) - 1} more" * (len(days) > 1),
            hint=f"--option {FORGET}=yes removes them anyway",
        )
    write_marker(run.lake, job, removal)
    finish_rebuild(run, job)
    for line in tell_readers(removal.tables, others):
        run.say(line)


def list_removal(lake: Lake, job: Job, options: Mapping[str, str]) -> Removal:
    """The tables and queries of a job; for `land` those of the given streams."""
    streams = named_streams(options) if job.name == "land" else []
    if not streams:
        return Removal(tuple(name for name in job.writes if name in TABLES), job.queries)
    queries = [f"land-{stream}" for stream in streams] + (["land-kafka"] if "messages" in streams else [])
    return Removal(tuple(f"bronze.{stream}" for stream in streams), tuple(queries), tuple(streams))


def list_gone(run: Run, removal: Removal) -> list[str]:
    """Sentences about rows of a table that the journals no longer hold."""
    found: list[str] = []
    for stream in SCHEMAS:
        table = f"bronze.{stream}"
        if table in removal.tables and run.lake.exists(table):
            held = held_runs(run, stream)
            found += [
                f"{table} has rows {first} to {last} of run {name}"
                for name, (first, last) in sorted(runs_of_table(run.lake.path(table)).items())
                if not held.get(name, (0, 0))[0] <= first <= last < held.get(name, (0, 0))[1]
            ]
    if "gold.ohlc" in removal.tables and run.lake.exists("gold.ohlc"):
        found += list_gone_values(run)
    return found


def list_gone_days(lake: Lake, job: Job, removal: Removal) -> list[str]:
    """Sentences about days of a table that one of its source tables no longer has. `maintain.keep_days` removes the oldest days of each
    table separately, so a day is gone if any one source begins after it.
    """
    if not job.reads_tables_alone:
        return []
    held = {source: dates for source in job.reads if (dates := days_of(lake, source))}
    found: list[str] = []
    for name in removal.tables:
        days = sorted(days_of(lake, name))
        gone = {source: [day for day in days if day < min(of)] for source, of in held.items()}
        if not held or not any(gone.values()):
            gone = {" and ".join(job.reads): [day for day in days if not any(day in of for of in held.values())]}
        for source, of in gone.items():
            if of:
                more = f" to {of[-1]}" if len(of) > 1 else ""
                found.append(f"{name} has {of[0]}{more}, {source} does not")
    return found


def days_of(lake: Lake, name: str) -> set[str]:
    """The days of a table: from its log, or for silver.sessions, which is not partitioned by day, from its rows."""
    if not lake.exists(name):
        return set()
    if TABLES[name].day:
        return {str(file.get(f"partition.{DATE}")) for file in live_files(lake.path(name))}
    if name != SESSIONS.name:
        return set()
    rows = lake.read(name).selectExpr("cast(to_date(started) as string) as day").distinct().collect()
    return {row["day"] for row in rows}


def list_gone_values(run: Run) -> list[str]:
    """Runs for which gold.ohlc has values and the journals have no rows, and journals that do not begin at their first row."""
    held = held_runs(run, "messages")
    rows = run.lake.read("gold.ohlc").selectExpr("explode(map_keys(to_offsets)) as run").distinct().collect()
    found = [f"gold.ohlc has values of run {name}" for name in sorted({row["run"] for row in rows} - {*held})]
    journals = Journals(",".join(run.config.journal.paths), "messages")
    journals.look()
    begins = sorted(journals.firsts().items())
    return found + [f"the journal of {node} begins at row {first} of messages" for node, first in begins if first > 0]


def held_runs(run: Run, stream: str) -> dict[str, tuple[int, int]]:
    """The offsets of each run that the journals hold."""
    journals = Journals(",".join(run.config.journal.paths), stream)
    journals.look()
    runs = Runs(journals)
    found: dict[str, tuple[int, int]] = {}
    for span in (
        span for node in journals.folders for span in runs.spans(node)
    ):  # two nodes may hold copies of one run
        first, next = found.get(span.run, (span.first, span.next))
        found[span.run] = min(first, span.first), max(next, span.next)
    return found


def runs_of_table(path: str) -> dict[str, tuple[int, int]]:
    """The first and last offset of each run in a bronze table. Only files with several runs are read."""
    found: dict[str, tuple[int, int]] = {}
    for file in live_files(path):
        first, last = file.get("min.journal_offset"), file.get("max.journal_offset")
        if first is not None and last is not None and file.get("min.run") == file.get("max.run") is not None:
            spans: list[tuple[str, int, int]] = [(file["min.run"], first, last)]
        elif is_there(path, file):
            columns = {"run": pa.string(), "journal_offset": pa.int64()}
            rows = pq.read_table(
                path_of(path, file), columns=[*columns], partitioning=None, coerce_int96_timestamp_unit="us"
            ).cast(pa.schema(columns))
            sums = rows.group_by("run").aggregate([("journal_offset", "min"), ("journal_offset", "max")]).to_pylist()
            spans = [(row["run"], row["journal_offset_min"], row["journal_offset_max"]) for row in sums]
        else:
            continue
        for name, first, last in spans:
            low, high = found.get(name, (first, last))
            found[name] = min(low, first), max(high, last)
    return found


def write_marker(lake: Lake, job: Job, removal: Removal) -> None:
    """Record in the lake what is to be removed, before anything is removed."""
    write_json(marker_of(lake, job), removal._asdict())


def finish_rebuild(run: Run, job: Job) -> None:
    """Remove what the record lists, if there is one, including that of an interrupted run."""
    marker = marker_of(run.lake, job)
    try:
        removal = Removal(**{name: tuple(each) for name, each in json.loads(marker.read_text("utf-8")).items()})
    except FileNotFoundError:
        return
    for name in removal.tables:
        remove_table(run.lake, name)
    quarantine = run.lake.path(_QUARANTINE)
    if removal.quarantined and is_table(quarantine):
        keep_proof(run.lake, _QUARANTINE)
        named = ", ".join(f"'{stream}'" for stream in removal.quarantined)
        open_table(quarantine).delete(f"stream IN ({named})")
    for query in removal.queries:
        shutil.rmtree(run.lake.checkpoint(query), ignore_errors=not Path(run.lake.checkpoint(query)).exists())
    marker.unlink()
    run.say(f"{job.name}: {', '.join(removal.tables)} and their checkpoints removed")


def remove_table(lake: Lake, name: str) -> None:
    """Remove a table by renaming its folder first: if the run is killed, the table is complete or gone."""
    folder = Path(lake.path(name))
    aside = folder.with_name(f"{folder.name}.removed")
    if folder.exists():
        keep_proof(lake, name)
        shutil.rmtree(aside, ignore_errors=not aside.exists())
        folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=not aside.exists())


def keep_proof(lake: Lake, name: str) -> None:
    """Record the erasures that only the table's log has. The erased rows must not land again."""
    table, proof = TABLES[name], TABLES["ops.erasures"]
    rows = list_unproven(lake, table, datetime.now(UTC)) if lake.exists(name) else []
    if rows:
        write_rows(lake.path(proof.name), pa.Table.from_pylist(rows, arrow_schema(proof.schema)), proof)


def marker_of(lake: Lake, job: Job) -> Path:
    return lake.folder / _MARKERS / f"{job.name}.json"


def tell_readers(tables: Iterable[str], others: Iterable[Job]) -> list[str]:
    """A sentence with the jobs that read the rebuilt tables."""
    readers = [job for job in others if not job.parts and job.can_rebuild and {*tables} & {*job.reads}]
    stale = [job.name for job in readers if job.kind == "stream"]
    anew = [job.name for job in readers if job.kind == "batch"]
    lines = []
    if stale:
        verb = "has" if len(stale) == 1 else "have"
        lines.append(
            f"{', '.join(stale)} {verb} read these tables: run each with --rebuild as well ({counted(len(stale), 'job')})"
        )
    if anew:
        lines.append(f"{', '.join(anew)}: run again; they read the tables from the beginning")
    return lines
