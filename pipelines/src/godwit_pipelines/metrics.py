"""Metrics of streaming queries and of rounds of other jobs, as OpenMetrics: rows, batches, durations, lag, problems.

Owns the metrics and their text. Spark calls `Figures` after every batch, the command after every round; settings choose an address or a
file. Invariant: counters only rise while a process lives.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from .errors import ConfigInvalid
from .transforms.repeats import AHEAD

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_FIGURES = {
    "rows": ("counter", "Rows that the query has read."),
    "batches": ("counter", "Batches that the query has completed."),
    "busy_seconds": ("counter", "Time spent in batches."),
    "failures": ("counter", "Times that the query failed."),
    "late_rows": ("counter", "Rows or aggregates that arrived too late to be counted."),
    "future_rows": ("counter", "Rows whose time is more than a day from now, which are not counted."),
    "running": ("gauge", "1 while the query runs."),
    "batch_seconds": ("gauge", "How long the last batch took."),
    "rows_per_second": ("gauge", "Rows per second of the last batch."),
    "lag_rows": ("gauge", "Rows of the journals that are not read yet."),
    "last_batch_timestamp_seconds": ("gauge", "When the last batch began."),
    "state_rows": ("gauge", "Rows in the state of the query."),
    "state_bytes": ("gauge", "Memory of the state."),
}
_ROUNDS = {
    "job_runs": ("counter", "Runs of the job that have completed."),
    "problems": (
        "gauge",
        "Problems that the last round found: unreported faults, missing rows.",
    ),
    "round_seconds": ("gauge", "How long the last round took."),
    "last_round_timestamp_seconds": ("gauge", "When the last round ended."),
}


class Figures(StreamingQueryListener):
    """The metrics of every query of a session, by the query's name, and of its job's rounds."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self.lock = threading.Lock()
        self.queries: dict[str, dict[str, float]] = {}
        self.rounds: dict[str, dict[str, float]] = {}
        self.names: dict[str, str] = {}
        self.say: Callable[[str], None] = lambda _: None
        """Receives what a continuous query reports of its batches; for a query that ends, the watcher reports it."""
        self.warn: Callable[[str], None] = lambda _: None
        """Called once when the file can no longer be written."""
        self.has_failed = False
        if file is not None:
            check_file(file)
            self._replace(file)  # raises before a job has begun

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        with self.lock:
            self.names[str(event.id)] = event.name or str(event.id)
            self._of(str(event.id))["running"] = 1
        self._write()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = json.loads(event.progress.json)
        self.take(str(event.progress.id), progress)
        for line in replaced_journals(progress):
            self.say(f"{event.progress.name}: {line}")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """A query without new rows reports nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        with self.lock:
            figures = self._of(str(event.id))
            figures["running"] = 0
            figures["failures"] += 1 if event.exception else 0
        self._write()

    def take(self, query: str, progress: dict[str, Any]) -> None:
        """Add the progress of one batch, as Spark reports it."""
        with self.lock:
            figures = self._of(query)
            seconds = progress.get("batchDuration", 0) / 1000
            rows = rows_taken(progress)
            figures["rows"] += rows
            figures["batches"] += 1
            figures["busy_seconds"] += seconds
            figures["batch_seconds"] = seconds
            figures["rows_per_second"] = rows / seconds if seconds else 0
            figures["lag_rows"] = behind(progress)
            figures["last_batch_timestamp_seconds"] = datetime.fromisoformat(progress["timestamp"]).timestamp()
            states = progress.get("stateOperators", [])
            figures["late_rows"] += late_rows(progress)
            figures["future_rows"] += future_rows(progress)
            figures["state_rows"] = sum(state.get("numRowsTotal", 0) for state in states)
            figures["state_bytes"] = sum(state.get("memoryUsedBytes", 0) for state in states)
        self._write()

    def take_round(self, job: str, found: int, seconds: float) -> None:
        """Add the end of a round of a batch job."""
        with self.lock:
            figures = self.rounds.setdefault(job, dict.fromkeys(_ROUNDS, 0.0))
            figures["job_runs"] += 1
            figures |= {"problems": found, "round_seconds": seconds, "last_round_timestamp_seconds": time.time()}
        self._write()

    def text(self) -> str:
        """All metrics as OpenMetrics text."""
        with self.lock:
            lines = [*_lines(_FIGURES, "query", self.queries), *_lines(_ROUNDS, "name", self.rounds)]
        return "\n".join([*lines, "# EOF", ""])

    def _of(self, query: str) -> dict[str, float]:
        return self.queries.setdefault(self.names.get(query, query), dict.fromkeys(_FIGURES, 0.0))

    def _write(self) -> None:
        """A full disk does not stop the job: its tables matter more than its metrics."""
        if self.file is None:
            return
        try:
            self._replace(self.file)
            self.has_failed = False
        except OSError as error:
            if not self.has_failed:
                self.warn(f"metrics.file cannot be written: {error}")
            self.has_failed = True

    def _replace(self, file: Path) -> None:
        fresh = file.with_name(f".{file.name}.{os.getpid()}")
        fresh.write_text(self.text(), "utf-8")
        fresh.replace(file)


def check_file(file: Path) -> None:
    """Raises ConfigInvalid for a folder or a device: a file is put in its place after every batch, also in that of /dev/null."""
    if file.exists() and not file.is_file():
        raise ConfigInvalid("metrics.file", str(file), "is not a regular file")


def _lines(
    families: Mapping[str, tuple[str, str]], label: str, values: Mapping[str, dict[str, float]]
) -> Iterator[str]:
    """The families in OpenMetrics' text, a line for each of those that a label names."""
    for name, (kind, about) in families.items():
        full = f"godwit_pipelines_{name}"
        yield from (f"# TYPE {full} {kind}", f"# HELP {full} {about}")
        end = "_total" if kind == "counter" else ""
        for value, figures in sorted(values.items()):
            quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            yield f'{full}{end}{{{label}="{quoted}"}} {figures[name]:.15g}'


def behind(progress: dict[str, Any]) -> int:
    """Rows that the sources have and the query has not read, for sources that count rows."""
    total = 0
    for source in progress.get("sources", []):
        ends, latest = (_nodes(source.get(name)) for name in ("endOffset", "latestOffset"))
        total += sum(max(0, next - ends.get(node, next)) for node, next in latest.items())
    return total


def late_rows(progress: dict[str, Any]) -> int:
    """Rows that a batch left out because they were too late. If rows are summed before that, the sums are counted."""
    return sum(int(state.get("numRowsDroppedByWatermark", 0)) for state in progress.get("stateOperators", []))


def future_rows(progress: dict[str, Any]) -> int:
    """Rows that a batch left out because their time is more than a day ahead."""
    observed = progress.get("observedMetrics") or {}
    return sum(int(values["rows"]) for name, values in observed.items() if name.split()[0] == AHEAD)


def rows_taken(progress: dict[str, Any]) -> int:
    """Rows of a batch. For a source that passes ranges (asTasks) Spark counts the ranges; the offset has the number of rows."""
    if not any("tasks" in _read(source.get("endOffset")) for source in progress.get("sources", [])):
        return int(progress.get("numInputRows", 0))
    ends = _ends_come_to(progress)
    offsets = sum(max(0, next - end["begun"].get(node, next)) for end in ends for node, next in end["nodes"].items())
    return int(offsets - sum(end.get("absent", 0) for end in ends))


def lost_rows(progress: dict[str, Any]) -> int:
    """Rows that a batch skipped because retention or a person removed them before they were read."""
    return sum(int(end.get("lost", 0)) for end in _ends_come_to(progress))


def replaced_journals(progress: dict[str, Any]) -> list[str]:
    """Nodes whose journal a batch did not continue at the saved position, with the reason."""
    values = (end.get("replaced", {}).items() for end in _ends_come_to(progress))
    return [f"node {node}: {why}" for each in values for node, why in each]


def _ends_come_to(progress: dict[str, Any]) -> list[dict[str, Any]]:
    """The offsets at the end of a batch. A batch without new rows still has those of the last one."""
    ends = (
        (_read(source.get(name)) for name in ("startOffset", "endOffset")) for source in progress.get("sources", [])
    )
    return [end for start, end in ends if end != start]


def _nodes(offset: Any) -> dict[str, int]:
    return {node: int(next) for node, next in _read(offset).get("nodes", {}).items()}


def _read(offset: Any) -> dict[str, Any]:
    offset = json.loads(offset) if isinstance(offset, str) else offset
    return offset if isinstance(offset, dict) else {}


@contextmanager
def serving(figures: Figures, address: str) -> Iterator[int]:
    """Answer /metrics at HOST:PORT while the block runs; yields the port. An empty address starts no server."""
    if not address:
        yield 0
        return
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigInvalid("metrics.address", address, "must be HOST:PORT")

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.split("?")[0] == "/metrics"
            body = figures.text().encode() if found else b"Only /metrics is here.\n"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", CONTENT_TYPE if found else "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not logged."""

    try:
        server = ThreadingHTTPServer((host.strip("[]") or "127.0.0.1", int(port)), Answers)
    except OSError as error:
        raise ConfigInvalid("metrics.address", address, f"cannot be listened on: {error.strerror}") from error
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
