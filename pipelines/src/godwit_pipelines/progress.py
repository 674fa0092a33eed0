"""Shows the progress of queries, and waits for them.

Owns the bars on a terminal, and the lines of output that is not a terminal. Turns the failure of a query into an error of the pipelines.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from . import errors, words
from .metrics import behind, future_rows, late_rows, lost_rows, replaced_journals, rows_taken
from .source.kafka_faults import explain

_RAISED = re.compile(r"godwit_pipelines\.errors\.(\w+): (.+)")
_REFUSED = re.compile(
    r"^.*(?:No space left on device|Read-only file system|Permission denied|Disk quota exceeded|Input/output error"
    r"|[Nn]ot a directory|Mkdirs failed to create).*$",
    re.MULTILINE,
)
_SHARED = re.compile(r"Multiple streaming queries are concurrently using (\S+?)\.?(?:\s|$)")
_GONE = re.compile(r"(?:Path does not exist: |File |reading file )(?:file:(?://)?)?(/.*?\.parquet)\b")
_DAMAGED = re.compile(r"Encountered error while reading file (?:file:(?://)?)?(/.*?\.parquet)\b")
_LAND_AGAIN = "Restore the file; or `run land --rebuild --option streams=STREAM` for a bronze table, `run JOB --rebuild` for another"
_PLACE = re.compile(r"Checkpoint location (?:file:(?://)?)?(\S+) is in an inconsistent state")
_STATE = re.compile(
    r"CANNOT_LOAD_STATE_STORE|ChecksumException|STREAMING_STATE|STATE_STORE\w*INVALID|Error reading \w+ file"
)
_CHECKPOINT = re.compile(r"file:(?://)?(/[^\s,'\"]+?)/(?:state|offsets|commits|sources)/")
_LOOK_S = 0.25
_ARE, _WERE = ("are", "is"), ("were", "was")
_STOP_S = 30.0


def say(console: Console, text: str) -> None:
    """Print one line without wrapping it, so that a search in a log finds its words."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def watcher(
    console: Console, late: dict[str, int], is_asked_to_stop: Callable[[], bool] = lambda: False
) -> Callable[..., None]:
    """Returns a function that waits for a query which ends by itself, with a bar on a terminal. It adds late rows and rows with a future
    time to `late`. After a request to stop, the query ends after its batch.
    """

    def wait(query: StreamingQuery, committed: Callable[[], list[int]] | None = None) -> None:
        counted = watch(query, console, is_asked_to_stop, committed)
        if damaged := sum(committed()[1:]) if committed else 0:
            said = (
                f"{words.counted(damaged, 'row')} {_WERE[damaged == 1]} added to bronze.quarantine (damaged or invalid)"
            )
            say(console, f"{query.name}: {said}")
        for count, least, what, entry in (
            (counted.late, "at least ", "arrived too late and", "Late rows"),
            (counted.ahead, "", "with a future time", "Rows with a future time"),
        ):
            if count:
                late[query.name] = late.get(query.name, 0) + count
                said = f"{least}{words.counted(count, 'row')} {what} {_ARE[count == 1]} not counted"
                say(console, f"{query.name}: {said}; see `{entry}` in the runbook")
        for line in counted.replaced:
            say(console, f"{query.name}: {words.printable(line)}")
        if counted.lost:
            said = f"{words.counted(counted.lost, 'row')} {_ARE[counted.lost == 1]} no longer in the journals"
            say(console, f"{query.name}: {said}; they are skipped (journal.fail_on_data_loss)")

    return wait


def watch(
    query: StreamingQuery,
    console: Console,
    is_asked_to_stop: Callable[[], bool] = lambda: False,
    committed: Callable[[], list[int]] | None = None,
) -> Counted:
    """Wait until the query has processed all available data; raises its failure. `committed` counts the rows given to its tables, first
    the table that its rows are for. A batch that was committed before counts no rows when it is repeated.
    """
    columns = (
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TextColumn("{task.fields[rate]:,.0f}/s"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(words.printable(query.name or ""), total=None, rate=0.0)
        counted = Counted()
        try:
            while not query.awaitTermination(_LOOK_S):  # type: ignore[arg-type]  # takes parts of a second, too
                counted.take(query.recentProgress)
                progress.update(
                    task, completed=counted.rows, total=counted.rows + counted.behind or None, rate=counted.rate
                )
                if is_asked_to_stop() and (failure := stop_gently(query)) is not None:
                    raise translate(failure) from failure
        except StreamingQueryException as error:
            raise translate(error) from error
        counted.take(query.recentProgress)
        progress.update(task, completed=counted.rows, total=max(counted.rows, 1), rate=counted.rate)
    if not console.is_terminal:
        rows = counted.rows if committed is None else committed()[0]
        say(console, f"{query.name}: {words.counted(rows, 'row')} in {counted.seconds:.1f} s")
    return counted


class Counted:
    """The sums over a query's batches, each counted once."""

    def __init__(self) -> None:
        self.rows = 0
        self.behind = 0
        self.late = 0
        self.ahead = 0
        self.lost = 0
        self.replaced: list[str] = []
        self.seconds = 0.0
        self.rate = 0.0
        self.last = -1

    def take(self, batches: list[Any]) -> None:
        for batch in batches:
            batch_progress: dict[str, Any] = batch if isinstance(batch, dict) else batch.jsonValue
            if batch_progress["batchId"] <= self.last:
                continue
            self.last = batch_progress["batchId"]
            self.rows += rows_taken(batch_progress)
            self.late += late_rows(batch_progress)
            self.ahead += future_rows(batch_progress)
            self.lost += lost_rows(batch_progress)
            self.replaced += replaced_journals(batch_progress)
            self.seconds += batch_progress.get("batchDuration", 0) / 1000
            self.behind = behind(batch_progress)
            self.rate = self.rows / self.seconds if self.seconds else 0.0


def wait_all(
    queries: list[StreamingQuery],
    is_asked_to_stop: Callable[[], bool],
    stopping: Callable[[], None],
    check: Callable[[], None] = lambda: None,
) -> None:
    """Wait while queries run. After a request to stop, `stopping` is called and each query finishes its batch, within `_STOP_S` for all:
    if the cluster is gone, none would. Raises the first failure, also that of a last batch, and any error of `check`, which is called
    repeatedly.
    """
    while queries and not is_asked_to_stop():
        check()
        for query in queries:
            if not query.isActive:
                failure = query.exception()
                if failure is not None:
                    raise translate(failure) from failure
                return
        time.sleep(_LOOK_S)
    stopping()
    deadline = time.monotonic() + _STOP_S
    failures = [stop_gently(query, deadline - time.monotonic()) for query in queries]
    for failure in filter(None, failures):
        raise translate(failure) from failure


def stop_gently(query: StreamingQuery, wait_s: float = _STOP_S) -> StreamingQueryException | None:
    """Stop a query between two batches, or after its current batch; a next batch that has begun is repeated later. A batch that takes
    longer than `wait_s` is interrupted, which loses nothing either. Returns the failure that the query had before.
    """
    deadline, at_work = time.monotonic() + wait_s, _last_batch(query)
    while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
        if _last_batch(query) != at_work:
            break
        time.sleep(0.05)
    failure = None if query.isActive else query.exception()
    query.stop()
    return failure


def _last_batch(query: StreamingQuery) -> int:
    """The last that is done; -1: none is."""
    batch_progress: Any = query.lastProgress
    return -1 if batch_progress is None else int(batch_progress["batchId"])


def explain_disk(text: str) -> errors.DiskFailed | None:
    """The operating system's error about a file, in the words of Python, the Delta library or Java."""
    found = _REFUSED.search(text)
    return errors.DiskFailed(f"a file of the lake or of a journal: {found[0].strip(': ')}") if found else None


def explain_busy(text: str) -> errors.LakeBusy | None:
    """Spark's error when two processes write the same batch, which happens only if the file system has no locks."""
    found = _SHARED.search(text)
    return errors.LakeBusy(f"another process runs this query with {found[1]}, and wrote this batch") if found else None


def explain_place(text: str) -> errors.TableMissing | None:
    """Spark's error about a checkpoint from which a part was removed."""
    found = _PLACE.search(text)
    if found is None:
        return None
    return errors.TableMissing(
        f"{found[1]} is incomplete: remove all of it; see `A checkpoint was lost` in the runbook"
    )


def explain_state(text: str) -> errors.CheckpointBroken | None:
    """Spark's error about a checkpoint file that is missing, cut or damaged."""
    if not _STATE.search(text):
        return None
    found = _CHECKPOINT.search(text)
    where = f"{found[1]}: " if found else ""
    return errors.CheckpointBroken(
        f"{where}a file of the checkpoint is missing or damaged; see `A checkpoint was lost` in the runbook"
    )


def explain_gone(text: str) -> errors.TableMissing | None:
    """Spark's error about a deleted file of a table, as a sentence."""
    found = _GONE.search(text) if "does not exist" in text else None
    if found is None:
        return None
    return errors.TableMissing(
        f"{found[1]} is missing, so its table cannot be read; `godwit-pipelines run reconcile` names the rows that are missing"
    )


def explain_damaged(text: str) -> errors.TableBroken | None:
    """Spark's error about a table file that it cannot read."""
    found = _DAMAGED.search(text)
    return errors.TableBroken(f"{found[1]} is damaged: its table cannot be read. {_LAND_AGAIN}") if found else None


def translate(error: BaseException) -> Exception:
    """The error that a worker raised on purpose or that Kafka's client reported, found in Spark's error; otherwise Spark's error."""
    found = _RAISED.findall(str(error))
    if not found:
        for tell in (explain, explain_disk, explain_busy, explain_place, explain_state, explain_gone, explain_damaged):
            if failed := tell(str(error)):
                return failed
        return error if isinstance(error, Exception) else RuntimeError(str(error))
    name, text = found[-1]
    kind = getattr(errors, name, errors.PipelineError)
    raised: Exception = kind.__new__(kind)
    raised.args = (text.strip(),)
    return raised
