"""The node's own log: one event a line on standard error, as JSON, or readable where a person watches a terminal.

Owns the form of a line, what may not stand in it (secrets, control characters) and how many of one event a second.
Events are named noun_verb (`node_started`); everything else is a field. Invariant: no value can end a line or colour one.
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
"""Lines that wait to be written; further ones are dropped and counted."""
LOG_END_S = 1.0
"""How long the process waits at its end for lines that are queued."""
FIELD_CHARACTERS_MAX = 2_000
"""A longer text in a log line is cut: a peer chooses some of these texts."""


def start_logs(config: LoggingConfig, node: str, *, output: TextIO | None = None) -> None:
    """Sets up structlog for this process, and sends the standard library's warnings the same way."""
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
    """The logger of whoever asks: `read_logger().info("node_started", client=…)`."""
    return structlog.get_logger()


class QueuedOutput:
    """Lines for a file descriptor, written on a thread: a pipe that nobody reads stops no one but that thread.

    What finds no room in the queue is dropped, and a line says how many as soon as there is room.
    """

    def __init__(self, descriptor: int, lines_max: int = LOG_LINES_MAX) -> None:
        self.lines_dropped = 0
        self._descriptor = descriptor
        self._lines: queue.Queue[str] = queue.Queue(lines_max)
        self._dropped_before = 0
        self._thread = threading.Thread(target=self._work, name="godwit-log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Takes one line; never waits."""
        try:
            self._lines.put_nowait(text)
        except queue.Full:
            self.lines_dropped += 1

    def flush(self) -> None:
        """Nothing: the thread writes each line as it comes."""

    def finish(self, limit_s: float = LOG_END_S) -> bool:
        """Waits for what is queued, for so long; whether all of it is written."""
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
    """The process's standard error; what is queued at its end has a moment to be written."""
    output = QueuedOutput(sys.stderr.fileno())
    atexit.register(output.finish)
    return output


def wait_for_logs() -> None:
    """Waits until what is queued is written, for at most LOG_END_S: a pipe that nobody reads stops nobody for longer."""
    if open_stderr.cache_info().currsize:
        open_stderr().finish()


class Unfailing:
    """Where lines go. One that cannot be written (a full disk, a reader that has gone) is lost, and stops nothing of the node's."""

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
    """Lets a bounded number of lines of one event through a second; the first line after says how many were not written."""

    def __init__(self, per_second_max: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._max = per_second_max
        self._clock = clock
        self._windows: dict[
            str, tuple[int, int, int]
        ] = {}  # event → second, written in it, not written since last said

    def limit_event(self, _logger: Any, _method: str, event: Event) -> Event:
        """A structlog processor; drops what is over."""
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
    """Takes secrets out, cuts long texts, puts the words every line begins with first."""
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
    """One JSON object on one line; everything outside ASCII is escaped, so that no terminal obeys it."""
    return json.dumps(event, default=repr, separators=(",", ":"))


def render_console(_logger: Any, _method: str, event: Mapping[str, Any]) -> str:
    """Time, level, event, then name=value; a value that is not plain stands as JSON."""
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
    """What libraries say through the standard library's logging, as events of our own."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        told = {"said": record.getMessage(), "by": record.name}
        read_logger().log(record.levelno, "library_spoke", **told, **({"exc_info": error} if error else {}))
