"""`maintain`: compacts small files, removes old days and unused files, and erases persons.

It handles one table after the other, outside of any streaming process. A query that streams a table does not receive rows twice because
of it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from ..delta.columns import arrow_schema
from ..delta.erasing import count_rows, erase_rows
from ..delta.log import open_table
from ..delta.table_files import live_files
from ..delta.writing import write_rows
from ..errors import ConfigInvalid
from ..tables import DATE, TABLES, Table
from ..words import counted
from .erasures import noting, prove
from .job import Job, Outcome, Run
from .options import is_yes

_ORPHAN_HOURS = 24.0
"""No batch takes longer from its first file to its commit."""
_LEFT = "a job is running or was killed: run this again after a day, or with --option alone=yes while no job runs"


def run(run: Run) -> Outcome:
    """Maintain all tables that exist, or the one that --option table=NAME names."""
    named = run.options.get("table", "")
    tables = [TABLES[named]] if named else list(TABLES.values())
    there = [table for table in tables if run.lake.exists(table.name)]
    person = run.options.get("erase", "")
    if person:
        return erase(run, there, person, is_alone=is_yes(run.options, "alone", "no"))
    lines = [f"{table.name}: {done}" for table in there if (done := maintain(run, table))]
    return Outcome("\n".join(lines) or "nothing to do")


def maintain(run: Run, table: Table) -> str:
    """Maintain one table; returns what was done."""
    path, settings, done = run.lake.path(table.name), run.config.maintain, []
    days = settings.keep_days.get(table.name)
    if days is not None and table.day:
        oldest = oldest_kept(days)
        removed = open_table(path).delete(f"{DATE} < DATE '{oldest.isoformat()}'")["num_deleted_rows"] or 0
        done += [f"{counted(removed, 'row')} of days before {oldest} removed"] if removed else []
    for day in small_days(path, settings.compact_files_min, settings.compact_bytes):
        made = open_table(path).optimize.compact(
            partition_filters=[(DATE, "=", day)] if day else None, target_size=settings.compact_bytes
        )
        if made["numFilesRemoved"]:
            done.append(
                f"{counted(made['numFilesRemoved'], 'file')} made {made['numFilesAdded']}"
                + (f" of {day}" if day else "")
            )
    done += vacuum(path, settings.vacuum_hours)
    return ", ".join(done)


def oldest_kept(days: str) -> date:
    """The oldest day that a table keeps with this number of days."""
    return (datetime.now(UTC) - timedelta(days=float(days))).date()


def small_days(path: str, files_min: int, bytes_max: int) -> list[str]:
    """The days with many small files. A day without a name is a whole table that has no days."""
    counted: dict[str, int] = {}
    for file in live_files(path):
        if file["size_bytes"] < bytes_max:
            day = str(file.get(f"partition.{DATE}") or "")
            counted[day] = counted.get(day, 0) + 1
    return sorted(day for day, count in counted.items() if count >= files_min)


def vacuum(path: str, hours: float, *, orphan_hours: float = _ORPHAN_HOURS) -> list[str]:
    """Remove files that are no longer part of the table, and old files that never were. Younger ones can belong to a job that has not
    committed yet.
    """
    table = open_table(path)
    gone = set()
    for kept_hours, is_full in ((hours, False), (max(hours, orphan_hours), True)):
        gone |= {*table.vacuum(math.ceil(kept_hours), dry_run=False, enforce_retention_duration=False, full=is_full)}
    table.create_checkpoint()
    return [f"{counted(len(gone), 'file')} removed"] if gone else []


def erase(run: Run, tables: list[Table], person: str, *, is_alone: bool) -> Outcome:
    """Remove a person from every table, with the files, and record it. Journals keep the rows until retention removes them, but they do
    not land in this lake again. `is_alone`: no other job writes to the lake.
    """
    now, digest, found = datetime.now(UTC), hashlib.sha256(person.encode()).hexdigest(), 0
    rows: list[dict[str, object]] = []
    lines: list[str] = []
    for table in tables:
        if not (table.persons or table.texts):
            continue
        path = run.lake.path(table.name)
        removed = erase_rows(path, table, person, noting(run.lake, table, digest, now))
        vacuum(path, 0.0, orphan_hours=0.0 if is_alone else _ORPHAN_HOURS)
        rows += prove(run.lake, table, digest, now, removed)
        lines.append(f"{table.name}: {counted(removed, 'row')} removed")
        left = orphans_naming(path, table, person)
        if left:
            files = counted(len(left), "file that no commit knows names", "files that no commit knows name")
            lines.append(f"{table.name}: {files} the person, or cannot be read; {_LEFT}: {', '.join(left)}")
            found += len(left)
    proof = TABLES["ops.erasures"]
    write_rows(run.lake.path(proof.name), pa.Table.from_pylist(rows, arrow_schema(proof.schema)), proof)
    if lines and not found and not any(row["rows"] for row in rows if row["person"] == digest):
        lines.append(f"no row names {person!r}: names must match exactly, including upper and lower case")
    return Outcome("\n".join(lines) or "there is no table that names persons", found)


def orphans_naming(path: str, table: Table, person: str) -> list[str]:
    """Files that are not part of the table and name the person, or cannot be read. A running or killed job wrote them."""
    found = []
    for file in open_table(path).vacuum(0, dry_run=True, enforce_retention_duration=False, full=True):
        try:
            is_named = count_rows(Path(path) / unquote(file), table, person) > 0
        except FileNotFoundError:
            continue
        except (pa.ArrowException, OSError):
            is_named = True
        if is_named:
            found.append(file)
    return found


def check(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for a name that is not a table, and for an empty name to erase, which would report success."""
    if "table" in options and options["table"] not in TABLES:
        raise ConfigInvalid(
            "--option table", options["table"], "is not a table", hint="`list --tables` lists all tables"
        )
    is_yes(options, "alone", "no")
    if options.get("erase", "somebody") == "":
        raise ConfigInvalid("--option erase", "", "must name an identity, client, address or recipient")


JOB = Job(
    name="maintain",
    about="compacts small files, removes expired days and unused files; --option erase=NAME erases a person",
    run=run,
    reads=tuple(TABLES),
    writes=(*TABLES,),
    can_rebuild=False,
    kind="batch",
    every_s=3600.0,
    options={
        "table": "Maintain only this table. Default: all.",
        "erase": "Erase the rows of this identity, client, address or recipient from every table and file.",
        "alone": "yes: no job is writing to the lake, so files that are in no commit are removed regardless of age.",
    },
    check=check,
)
