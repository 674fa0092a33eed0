"""What a job is, and what it runs with.

Owns the shape that every job has: it declares what it reads and writes, and its `run` reads, transforms and writes in about forty lines.
The transforms are pure functions in transforms/; lake.py owns the tables' files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from ..delta.commits import PUT_BACK, is_table
from ..delta.log import count_rows, open_table
from ..errors import CheckpointOlder, TableMissing, TableReplaced
from ..lake import Lake
from ..settings import Config
from ..source.checkpoints import check_whole
from ..source.places import last_batch, last_batch_of_rows, query_id
from ..tables import TABLES

Committed = Callable[[], list[int]] | None
"""How many rows a query committed to each of its tables."""
_STARTED_SLOWLY = "Python worker failed to connect back"
_STARTS_MAX = 10


@dataclass(frozen=True)
class Outcome:
    """The result of a job: its text, and `found`, the number of problems. If it is above zero, the command exits with code 1."""

    text: str = ""
    found: int = 0


@dataclass
class Run:
    """One run of a job: the session, the tables, and its interval.

    `every_s` is None for a run that processes all available data and ends. Streaming jobs call `start` for each query. Batch jobs (kind
    "batch") read with `lake.read`, write with `lake.replace`, and are called again every `every_s` seconds.
    """

    spark: SparkSession
    config: Config
    lake: Lake
    every_s: float | None = None
    job: str = ""
    options: dict[str, str] = field(default_factory=dict)
    """The values of --option NAME=VALUE for this job."""
    say: Callable[[str], None] = print
    watch: Callable[[StreamingQuery, Committed], None] = lambda query, _: _wait(query)
    """Waits for a query that ends by itself, and may show progress. It is given what counts committed rows, if anything does: of the table
    that its rows are for, and of the quarantine.
    """
    is_asked: Callable[[], bool] = lambda: False
    """Whether a continuous run was asked to end: finished work stays, and no new work begins."""
    queries: list[StreamingQuery] = field(default_factory=list)
    places: list[Path] = field(default_factory=list)
    """The checkpoints of continuous queries."""

    def journal(self, stream: str, where: str = "") -> DataFrame:
        """A table of the journals as a batch, or only its rows that match a condition in SQL."""
        return self.lake.journal(stream, where)

    def journal_stream(self, stream: str) -> DataFrame:
        """A table of the journals as a stream."""
        return self.lake.journal_stream(stream)

    def app(self, query: str) -> str:
        """The name under which a query of this job commits its batches."""
        return query_id(Path(self.lake.checkpoint(query)))

    def start(self, writer: DataStreamWriter, query: str, into: Sequence[str] = (), merges: Sequence[str] = ()) -> None:
        """Start a query of this job with its name and checkpoint. A run that ends waits for the query; in a continuous run the command
        waits for all queries. After a request to stop, no query is started. `into`: tables that its rows are appended to, whose
        commits are counted. `merges`: tables that each of its batches is merged into.
        """
        if self.is_asked():
            return
        checkpoint = self.lake.checkpoint(query)
        check_whole(Path(checkpoint))
        check_checkpoint(Path(checkpoint), [self.lake.path(name) for name in TABLES if self.lake.exists(name)])
        paths = [self.lake.path(name) for name in into]
        if self.config.journal.fail_on_data_loss:
            check_tables(Path(checkpoint), paths)
        check_merged(Path(checkpoint), [self.lake.path(name) for name in merges])
        last = newest_batch(query_id(Path(checkpoint)), paths)
        writer = writer.queryName(query).option("checkpointLocation", checkpoint)
        if self.every_s is None:

            def count() -> list[int]:
                app = query_id(Path(checkpoint))
                return [count_rows(path, app, last) if is_table(path) else 0 for path in paths]

            started = run_to_end(writer, lambda begun: self.watch(begun, count if into else None))
        else:
            started = writer.trigger(processingTime=f"{int(self.every_s * 1000)} milliseconds").start()
            self.places.append(Path(self.lake.checkpoint(query)))
        self.queries.append(started)

    def check_places(self) -> None:
        """Raises TableMissing if a checkpoint or the lake was removed during a continuous query. Without this check it would continue
        into an empty table, which lacks everything that landed before.
        """
        for place in self.places:
            if not (place / "metadata").exists():
                raise TableMissing(f"{place} was removed in whole or part while its query ran: all queries stop")


def _wait(query: StreamingQuery) -> None:
    query.awaitTermination()


def newest_batch(query: str, tables: Iterable[str]) -> int:
    """The last batch of a query that any of the tables has; -1 if none has one."""
    if not query:
        return -1
    done = (open_table(table).transaction_version(query) for table in tables if is_table(table))
    return max((each for each in done if each is not None), default=-1)


def check_tables(checkpoint: Path, tables: Sequence[str]) -> None:
    """Raises TableReplaced if no table has the last batch that the checkpoint records as done: the first table was restored from a copy,
    and rows that landed since are missing.
    """
    batch = last_batch_of_rows(checkpoint)
    if batch is None or not tables or not is_table(tables[0]):
        return
    newest = newest_batch(query_id(checkpoint), tables)
    if newest < batch:
        raise TableReplaced(
            f"{tables[0]} holds no batch of its query after {newest}, and {checkpoint} has completed batch {batch}: the table was "
            "restored from a copy or recreated. Remove the checkpoint: `land` then continues after the last row of the table"
        )


def check_merged(checkpoint: Path, tables: Iterable[str]) -> None:
    """Raises TableReplaced if a table lacks the last batch of the query: it was restored from a copy, or removed."""
    query, batch = query_id(checkpoint), last_batch(checkpoint, "commits")
    if not query or batch is None:
        return
    for table in tables:
        newest = newest_batch(query, [table])
        if newest < batch:
            raise TableReplaced(
                f"{table} holds no batch of its query after {newest}, and {checkpoint} has completed batch {batch}: the table was "
                "restored from a copy, removed or recreated. Run the job with --rebuild"
            )


def check_checkpoint(checkpoint: Path, tables: Iterable[str]) -> None:
    """Raises CheckpointOlder if a table has a batch that the checkpoint has not begun: the checkpoint was restored from a copy. The next
    batches would look like repeats, and their rows would be left out.
    """
    query = query_id(checkpoint)
    if not query:
        return
    begun = last_batch(checkpoint, "offsets")
    newest = -1 if begun is None else begun
    for table in tables:
        done = open_table(table).transaction_version(query)
        if done is not None and done > newest:
            raise CheckpointOlder(
                f"{checkpoint} ends at batch {newest}, and {table} holds batch {done} of its query: it was restored from a copy. "
                + PUT_BACK
            )


def run_to_end(writer: DataStreamWriter, watch: Callable[[StreamingQuery], None]) -> StreamingQuery:
    """Process all available data. If Python workers do not start within Spark's ten seconds, as on a machine under load, the query is
    started again from its checkpoint.
    """
    for attempt in range(_STARTS_MAX):
        started = writer.trigger(availableNow=True).start()
        try:
            watch(started)
            break
        except Exception as error:
            if attempt + 1 == _STARTS_MAX or _STARTED_SLOWLY not in str(error):
                raise
    return started


@dataclass(frozen=True)
class Job:
    """A job and its declaration. `reads` and `writes` name streams (`journal.messages`), tables (`bronze.messages`) or `subjects`."""

    name: str
    about: str
    run: Callable[[Run], Outcome | None]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    kind: str = "stream"
    """`stream` starts queries that continue from their checkpoints; `batch` works on tables as they are."""
    parts: tuple[str, ...] = ()
    """The jobs that it runs, where it is made of others."""
    queries: tuple[str, ...] = ()
    """The queries that fill its tables, by the names of their checkpoints."""
    can_rebuild: bool = True
    """Whether its tables can be filled again from its sources."""
    every_s: float = 10.0
    """The interval of a run that continues (`--every`) and names no interval."""
    options: dict[str, str] = field(default_factory=dict)
    """The names for --option, each with its description."""
    takes_kafka: bool = True
    """Whether topics of Kafka do for it in place of a journal."""
    check: Callable[[Mapping[str, str]], None] = lambda _: None
    """Raises ConfigInvalid for options that cannot be, before Spark starts."""

    @property
    def reads_tables_alone(self) -> bool:
        """Whether the job reads only tables: without a lake it has nothing to do."""
        return all(name in TABLES for name in self.reads)

    @property
    def needs_journals(self) -> bool:
        """Whether the job needs a journal, or a Kafka topic in its place."""
        return any(name.startswith("journal.") for name in self.reads)
