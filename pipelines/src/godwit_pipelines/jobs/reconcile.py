"""`reconcile`: compares the journals with what has landed. Names every missing and duplicate row; if there is one, the command exits with
code 1.

Days that `maintain` removed are ignored. It reads no rows: the log of a bronze table has bounds and counts of its files. Only if bounds
overlap or leave something out are the offsets themselves read. Rows of a removed file or table are missing, because `land` has passed
them. Erased rows are not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time
from pathlib import Path

import pyarrow as pa
from pyspark.sql import functions as F

from ..delta.columns import arrow_schema
from ..delta.table_files import is_there, live_files
from ..delta.writing import write_rows
from ..schemas import SCHEMAS
from ..source.extents.lost import Lost
from ..source.journal import check_same_journals
from ..source.offsets import reached_by_run
from ..source.parts import Journals
from ..source.places import find_runs, last_batch, offset_of
from ..source.positions import run_at
from ..source.runs import Runs, RunSpan, ranges_in, ranges_of_run
from ..source.segments import SKIPPED, StreamFolder, times_of
from ..tables import TABLES
from ..transforms.ranges import Range, clipped, count_offsets, merged, without
from ..words import counted
from .erasures import count_unplaced, erased_ranges
from .job import Job, Outcome, Run
from .maintain import oldest_kept
from .ranges import Extent, Finding, compare, extents_of, find_lost, reached_by, within

_FAULTS = ("hole", "repeat", "lost")
"""Kinds of findings that end the command with 1. A row in quarantine is kept there; one that is lost is nowhere."""
_DAMAGED = "bronze.quarantine"
"""Holds the rows that are in no other table, for they are damaged."""
WERE_ERASED = (
    "were erased before erasures recorded offsets: MISSING rows may be these, and landing again would restore them"
)


def run(run: Run) -> Outcome:
    """Check every stream of every node, write ops.landing, and print the findings."""
    now = datetime.now(UTC)
    findings: list[Finding] = []
    for stream in SCHEMAS:
        findings += check_stream(run, stream)
    table = TABLES["ops.landing"]
    rows = [{**finding._asdict(), "time": now, "date": now.date()} for finding in findings]
    write_rows(run.lake.path(table.name), pa.Table.from_pylist(rows, arrow_schema(table.schema)), table)
    faults = [finding for finding in findings if finding.kind in _FAULTS]
    lost = {(finding.stream, finding.node) for finding in faults if finding.kind == "lost"}
    lines = [finding.describe((finding.stream, finding.node) in lost) for finding in findings]
    return Outcome("\n".join([*lines, *excuses(run, faults)]) or "no node has written a journal yet", len(faults))


def excuses(run: Run, faults: list[Finding]) -> list[str]:
    """Reasons why missing rows may be in order, if this cannot be known."""
    holed = sorted({f"bronze.{finding.stream}" for finding in faults if finding.kind == "hole"})
    unplaced = count_unplaced(run.lake, [*holed, _DAMAGED]) if holed else 0
    if not unplaced:
        return []
    rows = counted(unplaced, "row")
    return [f"{rows} of {', '.join(holed)} or of the quarantine {WERE_ERASED}"]


def check_stream(run: Run, stream: str) -> list[Finding]:
    """The findings of a stream by node: rows that are complete, behind, missing, repeated, quarantined or lost."""
    journals = Journals(",".join(run.config.journal.paths), stream)
    journals.look()
    checkpoint = Path(run.lake.checkpoint(f"land-{stream}"))
    if (batch := last_batch(checkpoint, "offsets")) is not None:
        check_same_journals(run.config.journal.paths, stream, offset_of(checkpoint, batch))
    come = reached_by_run(find_runs(checkpoint, stream))  # before what is there: land may be at work
    runs, erased = Runs(journals), erased_ranges(run.lake, stream)
    spans = {node: runs.spans(node) for node in sorted(journals.folders)}
    path = run.lake.path(f"bronze.{stream}")
    files = live_files(path)
    there, gone = ([file for file in files if is_there(path, file) is wanted] for wanted in (True, False))
    landed = extents_of(there, {span.run for of in spans.values() for span in of})
    findings: list[Finding] = []
    for node, of in spans.items():
        folder = journals.folders[node]
        first = max(first_kept(run, table, folder) for table in (f"bronze.{stream}", _DAMAGED))
        held = Extent(first, folder.next, folder.next - first)
        reached, extents = 0, list[Extent]()
        for span in of:  # rows of other runs at the same offsets are other rows
            known = plain_extents(landed.get(span.run, []), ranges_of_run(erased, node, span.run))
            extents += within(read_extents(run, stream, span.run) if known is None else known, span.first, span.next)
            up_to = max(reached_by(gone, span.run), come.get(span.run, 0))
            reached = max(reached, min(up_to, span.next) if up_to > span.first else 0)
        quarantined, erased_here = quarantined_rows(run, stream, node, of), ranges_in(erased, of, node)
        removed = journals.removed_files(node)
        found = compare(
            stream, node, held, merged([*folder.missing, *removed]), extents, quarantined, reached, erased_here
        )
        lost = lost_rows(folder, removed)
        found += find_lost(stream, node, held, lost, extents, quarantined, erased_here)
        if folder.tail_bytes:
            found.append(Finding(stream, node, "tail", folder.next, folder.next, 0, bytes=folder.tail_bytes))
        findings += [each._replace(run=run_at(of, each.first)) for each in found]
    for folder in journals.unnamed:
        findings.append(Finding(stream, str(folder.folder), "tail", 0, 0, 0, bytes=folder.tail_bytes))
    return findings


def first_kept(run: Run, table: str, folder: StreamFolder) -> int:
    """The first offset of a journal that must be in its table. Segments whose days `maintain` removes (maintain.keep_days) are ignored."""
    days = run.config.maintain.keep_days.get(table)
    if days is None:
        return folder.first
    begin = datetime.combine(oldest_kept(days), time(), UTC).timestamp() * 1e6
    kept = (each for each in folder.segments_of(folder.first, folder.next) if (times_of(each) or (begin,))[0] >= begin)
    return next((max(segment.first, folder.first) for segment in kept), folder.next)


def plain_extents(files: list[Extent], erased: list[Range]) -> list[Extent] | None:
    """The ranges of offsets that files hold, if each has every offset between its bounds except erased ones, and no two overlap: then
    bounds are enough. None otherwise.
    """
    ordered = sorted(files)
    if any(before.next > after.first for before, after in itertools.pairwise(ordered)):
        return None
    runs: list[Extent] = []
    for file in ordered:
        left = without([(file.first, file.next)], clipped(erased, file.first, file.next))
        if file.rows != count_offsets(left):
            return None
        runs += [Extent(first, next, next - first) for first, next in left]
    return runs


def read_extents(run: Run, stream: str, name: str) -> list[Extent]:
    """The ranges of offsets of a run in the bronze table, read from its rows because the bounds of files are not enough."""
    rows = run.lake.read(f"bronze.{stream}", is_partial=True).where(F.col("run") == name)
    counted = rows.groupBy("journal_offset").count()
    numbered = counted.selectExpr(
        "journal_offset",
        "count",
        "journal_offset - row_number() OVER (PARTITION BY count ORDER BY journal_offset) AS start",
    )
    grouped = numbered.groupBy("start", "count").agg(
        F.min("journal_offset").alias("first"), F.max("journal_offset").alias("last")
    )
    found = grouped.select("first", "last", "count").collect()
    return [Extent(row["first"], row["last"] + 1, (row["last"] + 1 - row["first"]) * row["count"]) for row in found]


def quarantined_rows(run: Run, stream: str, node: str, spans: Sequence[RunSpan]) -> list[Lost]:
    """The rows of a node's journal that are in quarantine: extents of lost rows, and damaged rows as extents of one row without a size.
    If the run of an entry is unknown, it counts for every run.
    """
    if not run.lake.exists(_DAMAGED):
        return []
    rows = run.lake.read(_DAMAGED, is_partial=True).where(F.col("stream") == stream)
    is_own = (F.col("node") == node) & F.col("run").isNull() | F.col("run").isin([span.run for span in spans])
    next = F.coalesce("next", F.col("journal_offset") + 1).alias("next")
    found = rows.where(is_own).select("run", "journal_offset", next, "bytes").distinct().collect()
    return sorted(
        {Lost(*each[1:]) for each in map(tuple, found) if each[0] in (None, run_at(spans, each[1]))},
        key=lambda each: (each.first, each.next),
    )


def lost_rows(folder: StreamFolder, removed: Iterable[Range]) -> list[Lost]:
    """The offsets whose rows the node itself lost, or whose file somebody removed. Offsets that it skipped after a power cut never had
    a row.
    """
    own = [(first, next - SKIPPED if next - first >= SKIPPED else next) for first, next in folder.missing]
    return [Lost(*each) for each in merged([*own, *removed])]


JOB = Job(
    name="reconcile",
    about="compares the journals with what landed and names every missing, lost and duplicate row; exits with code 1 if there is one",
    run=run,
    reads=(
        *(f"journal.{stream}" for stream in SCHEMAS),
        *(f"bronze.{stream}" for stream in SCHEMAS),
        _DAMAGED,
        "ops.erased",
        "ops.erasures",
    ),
    writes=("ops.landing",),
    can_rebuild=False,
    kind="batch",
    every_s=300.0,
)
