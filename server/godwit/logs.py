"""The node's log: one event on each line of standard error, as JSON, or as readable text on a terminal.

Owns the form of a line, the removal of secrets and control characters, and the rate limit of each event. Events are named
noun_verb (`node_started`); everything else is a field. Invariant: no value can end a line or change its colour.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import cache
from typing import Any, TextIO, cast

import structlog

from .config.tree import LoggingConfig

Event = MutableMapping[str, Any]

SECRET_FIELDS = frozenset({"token", "tokens", "authorization", "password", "secret", "cookie"})
LOG_LINES_MAX = 10_000
"""How many lines can wait to be written; further ones are dropped and counted."""
LOG_END_S = 1.0
"""How long the process waits at its end for queued lines, in seconds."""
FIELD_CHARACTERS_MAX = 2_000
"""Longer texts in a log line are cut, because peers choose some of them."""


def start_logs(config: LoggingConfig, node: str, *, output: TextIO | None = None) -> None:
    """Configure structlog for this process, and send the standard library's warnings to it."""
    is_queued = output is None
    output = output or sys.stderr
    is_console = config.format == "console" or (config.format == "auto" and output.isatty())
    level = logging.getLevelNamesMapping()[config.level.upper()]
    flow = EventFlow(config.events_per_second_max)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            flow.limit_event,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(),
            lambda _logger, _method, event: clean_event(event, node),
            render_console if is_console else render_json,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, open_stderr() if is_queued else Unfailing(output))),
        cache_logger_on_first_use=False,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    root.setLevel(max(level, logging.WARNING))


def read_logger() -> Any:
    """A logger for the calling module: `read_logger().info("node_started", client=…)`."""
    return structlog.get_logger()


class QueuedOutput:
    """Writes lines to a file descriptor on a thread, so that a pipe without a reader blocks only that thread. Lines that do
    not fit into the queue are dropped; as soon as there is room, a line reports their number.
    """

    def __init__(self, descriptor: int, lines_max: int = LOG_LINES_MAX) -> None:
        self.lines_dropped = 0
        self._descriptor = descriptor
        self._lines: queue.Queue[str] = queue.Queue(lines_max)
        self._dropped_before = 0
        self._thread = threading.Thread(target=self._work, name="godwit-log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Queue one line; never waits."""
        try:
            self._lines.put_nowait(text)
        except queue.Full:
            self.lines_dropped += 1

    def flush(self) -> None:
        """Does nothing, because the thread writes each line at once."""

    def finish(self, limit_s: float = LOG_END_S) -> bool:
        """Wait for queued lines, for a bounded time. Returns whether all are written."""
        until = time.monotonic() + limit_s
        with self._lines.all_tasks_done:
            while self._lines.unfinished_tasks and (left := until - time.monotonic()) > 0:
                self._lines.all_tasks_done.wait(left)
            return not self._lines.unfinished_tasks

    def _work(self) -> None:
        while True:
            line = self._lines.get()
            dropped = self.lines_dropped
            if dropped > self._dropped_before:
                line += json.dumps({"event": "log_lines_dropped", "count": dropped - self._dropped_before}) + "\n"
                self._dropped_before = dropped
            left = line.encode(errors="backslashreplace")
            with suppress(OSError):  # a full disk, a reader that has gone: the line is lost
                while left:
                    left = left[os.write(self._descriptor, left) :]
            self._lines.task_done()


@cache
def open_stderr() -> QueuedOutput:
    """The process's standard error. At the end, queued lines have a short time to be written."""
    output = QueuedOutput(sys.stderr.fileno())
    atexit.register(output.finish)
    return output


def wait_for_logs() -> None:
    """Wait until queued lines are written, for at most LOG_END_S, so that a pipe without a reader does not block longer."""
    if open_stderr.cache_info().currsize:
        open_stderr().finish()


class Unfailing:
    """The output of the log. A line that cannot be written (a full disk, a closed pipe) is dropped without an error."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self.lines_lost = 0

    def write(self, text: str) -> None:
        try:
            self._output.write(text)
        except (OSError, ValueError):
            self.lines_lost += 1

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._output.flush()


class EventFlow:
    """Limits the lines of one event in a second; the first line afterwards reports how many were dropped."""

    def __init__(self, per_second_max: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max = per_second_max
        self._clock = clock
        self._windows: dict[
            str, tuple[int, int, int]
        ] = {}  # event → second, written in it, not written since last said

    def limit_event(self, _logger: Any, _method: str, event: Event) -> Event:
        """A structlog processor that drops lines above the limit."""
        name = str(event.get("event"))
        second = int(self._clock())
        began, written, missed = self._windows.get(name, (second, 0, 0))
        if began != second:
            began, written = second, 0
        if written >= self._max:
            self._windows[name] = (began, written, missed + 1)
            raise structlog.DropEvent
        self._windows[name] = (began, written + 1, 0)
        if missed:
            event["not_written"] = missed
        return event


def clean_event(event: Event, node: str) -> Event:
    """Remove secrets, cut long texts, and put the common fields first."""
    cleaned: Event = {
        "time": event.pop("timestamp", ""),
        "level": event.pop("level", ""),
        "event": event.pop("event", ""),
    }
    cleaned["node"] = node
    for name, value in event.items():
        is_secret = name.lower() in SECRET_FIELDS
        cleaned[name] = "(secret)" if is_secret else value if name == "exception" else _cut(value)
    return cleaned


def render_json(_logger: Any, _method: str, event: Mapping[str, Any]) -> str:
    """One JSON object on one line; all characters outside ASCII are escaped, so that a terminal does not interpret them."""
    return json.dumps(event, default=repr, separators=(",", ":"))


def render_console(_logger: Any, _method: str, event: Mapping[str, Any]) -> str:
    """Time, level, event, then name=value; values that are not plain are written as JSON."""
    moment = str(event["time"])[11:23]
    parts = [
        f"{name}={_plain(value)}" for name, value in event.items() if name not in ("time", "level", "event", "node")
    ]
    return " ".join([moment, f"{event['level']:<7}", _plain(event["event"]), *parts])


def _plain(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value, default=repr)
    is_plain = value != "" and value.isascii() and value.isprintable() and not set(value) & set(' "=')
    return value if is_plain else json.dumps(value)


def _cut(value: object) -> object:
    if isinstance(value, str) and len(value) > FIELD_CHARACTERS_MAX:
        return value[:FIELD_CHARACTERS_MAX] + "…"
    return value


class _Bridge(logging.Handler):
    """Converts records of the standard library's logging to events."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        fields = {"said": record.getMessage(), "by": record.name}
        read_logger().log(record.levelno, "library_spoke", **fields, **({"exc_info": error} if error else {}))
