"""Once a second: reads the node's statistics, adds them to the windows, and publishes the metrics on `/$node/NAME/…` in one
batch.

Owns the interval, the clock of the windows (which never runs backwards, also across a restart) and when they are saved.
It runs on a thread of its own with low priority, so that neither the shards nor the event loop wait. Invariant: its cost
grows with shards, protocols and codes, never with connections, subjects or messages.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..codes import CODES
from ..config.dispatch import DISPATCH_PATTERNS
from ..engine import Draft, Statistic
from ..logs import read_logger
from ..model import Position
from .fullness import FullnessWatch
from .presentation import Tree, list_due, list_pushes, make_root, show_now, show_window
from .process import ProcessMeter, stand_back
from .records import is_due, list_written, record_now, record_window
from .stats_snapshot import Series, StatsSnapshot, compare, take_reading
from .window_file import WindowFile, WindowFileInvalid, dump_windows
from .windows import WINDOWS, Windows

INTERVAL_S = 1.0
SAVE_INTERVAL_S = 300.0
GAP_S_MAX = 10.0
"""A reading counts for the time since the one before, but at most for this many seconds."""
HISTORY_MESSAGES = 180
"""How many messages the log of each `now` subject keeps: three minutes, for subscribers that join with `last`."""
PATTERNS: tuple[Mapping[str, Any], ...] = (
    {"pattern": "/$node/**", "log_messages_max": 1, "journal": False},
    {"pattern": "/$node/*/now", "log_messages_max": HISTORY_MESSAGES},
    {"pattern": "/$node/*/*/now", "log_messages_max": HISTORY_MESSAGES},
    {"pattern": "/$node/*/*/*/now", "log_messages_max": HISTORY_MESSAGES},
)
"""The node's settings for its own subjects, unless the configuration sets the same pattern."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The two clocks of a node, in seconds."""

    mono: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time


class Monitor:
    """The statistics of one node, from start to stop. `show` may be called from any thread at any time."""

    def __init__(
        self,
        name: str,
        read_stats: Callable[[], Mapping[str, Any]],
        publish_many: Callable[[Sequence[Draft]], Sequence[Position | int]] | None,
        file: WindowFile | None = None,
        *,
        read_process: Callable[[], Mapping[str, float]] | None = None,
        clock: Clock | None = None,
        write_stats: Callable[[int, list[Statistic]], bool] | None = None,
        write_interval_s: float = 60.0,
        read_limits: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """`publish_many` None: nothing is published. `file` None: the windows are lost when the node ends. `write_stats`
        None: nothing is written to the journal.
        """
        self._root = make_root(name)
        self._read_stats, self._publish_many = read_stats, publish_many
        self._file, self._clock = file, clock or Clock()
        self._write_stats, self._write_interval_s = write_stats, write_interval_s
        self._read_process = read_process or ProcessMeter().read
        self._read_limits, self._fullness = read_limits, FullnessWatch()
        self._lock = threading.Lock()
        self._windows = self._load()
        # The windows' time is this node's monotonic one, moved so that it never goes before what was saved.
        self._offset_s = max(self._clock.wall(), self._windows.time_s) - self._clock.mono()
        self._before: StatsSnapshot | None = None
        self._now: dict[Series, float] = {}
        self._now_ms = 0
        self._has_pushed = False
        self._refused: int | None = None
        self._own_subjects: set[str] = set()
        self._sockets_refused = 0
        self._saved_s = self._clock.mono()
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "statistics", stand_back)

    def start(self) -> None:
        """Start; the first reading is taken at once."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop between two readings, and save."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        if self._file is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._save)
        self._thread.shutdown(wait=False)

    def show(self, windows: Iterable[str] = ()) -> Tree:
        """`time` and `now`, and the windows that were requested by name."""
        with self._lock:
            asked = {name: show_window(name, self._windows.read(name)) for name in windows}
            return {"time": self._now_ms, "now": show_now(self._now), "windows": asked}

    @property
    def own_subjects(self) -> int:
        """How many of the node's subjects are those of its metrics."""
        return len(self._own_subjects)

    def turn(self) -> None:
        """Take one reading and process it; called by the loop and by tests."""
        stats = self._read_stats()
        reading = take_reading(self._clock.mono() + self._offset_s, stats, self._read_process())
        self._fullness.look(stats, self._read_limits())
        self._tell_sockets(sum(shard.get("sockets_refused", 0) for shard in stats["shards"]))
        with self._lock:
            before = self._before
            drafts = self._take(reading)
            records = self._record(before, reading)
        if self._publish_many is not None and drafts:
            outcomes = self._publish_many(drafts)
            accepted = zip(drafts, outcomes, strict=True)
            self._own_subjects.update(draft.subject for draft, outcome in accepted if not isinstance(outcome, int))
            self._note_refusals(outcomes)
        if self._write_stats is not None and records:
            self._write_stats(self._now_ms, records)
        if self._file is not None and self._clock.mono() - self._saved_s >= SAVE_INTERVAL_S:
            self._save()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        failing = ""
        while True:
            before = failing
            try:
                await loop.run_in_executor(self._thread, self.turn)
                failing = ""
            except Exception as error:  # a figure that cannot be had must not end the others for good
                failing = f"{type(error).__name__}: {error}"
            if failing and failing != before:  # not each second
                read_logger().error("statistics_failed", reason=failing)
            elif before and not failing:
                read_logger().info("statistics_recovered")
            due = max(due + INTERVAL_S, loop.time())  # a reading that was missed is not made up for: the next says more
            await asyncio.sleep(due - loop.time())

    def _take(self, reading: StatsSnapshot) -> list[Draft]:
        before, self._before = self._before, reading
        weight = min(reading.time_s - before.time_s, GAP_S_MAX) if before else 0.0
        self._now = compare(before or reading, reading)
        self._now_ms = int(self._clock.wall() * 1000)
        self._windows.add(reading.time_s, weight, self._now)
        if self._publish_many is None:
            return []
        pushes = list(list_pushes(self._root, "now", self._now_ms, show_now(self._now)))
        if before is not None:
            for name in list_due(before.time_s, reading.time_s) if self._has_pushed else WINDOWS:
                tree = show_window(name, self._windows.read(name))
                pushes += list_pushes(self._root, name, self._now_ms, tree)
            self._has_pushed = True
        return [Draft(subject, content) for subject, content in pushes]

    def _record(self, before: StatsSnapshot | None, reading: StatsSnapshot) -> list[Statistic]:
        """Write a reading to the journal, as far as it is due."""
        if self._write_stats is None or before is None:
            return []
        between = (before.time_s, reading.time_s)
        records = list(record_now(self._now)) if is_due(*between, self._write_interval_s) else []
        for name in list_written(*between, self._write_interval_s):
            records += record_window(name, self._windows.read(name))
        return records

    def _tell_sockets(self, refused: int) -> None:
        """Log one line for all sockets that were closed within a second; nothing else is known about them."""
        if refused > self._sockets_refused:
            why = "no descriptor was left: raise LimitNOFILE (ulimit -n)"
            read_logger().warning("sockets_refused", count=refused - self._sockets_refused, reason=why)
        self._sockets_refused = refused

    def _note_refusals(self, outcomes: Sequence[Position | int]) -> None:
        """Log once that the node's own messages are refused, and once that they are accepted again."""
        refused = next((outcome for outcome in outcomes if isinstance(outcome, int)), None)
        if refused != self._refused and refused is not None:
            read_logger().warning("statistics_refused", code=refused, reason=CODES[refused].sentence)
        self._refused = refused

    def _load(self) -> Windows:
        try:
            return (self._file.load() if self._file else None) or Windows()
        except WindowFileInvalid as error:
            read_logger().warning("statistics_lost", reason=str(error))
            return Windows()

    def _save(self) -> None:
        if self._file is None:
            return
        self._saved_s = self._clock.mono()
        with self._lock:
            content = dump_windows(self._windows)
        try:
            self._file.save(content)
        except OSError as error:
            read_logger().warning("statistics_not_saved", reason=f"{self._file.path}: {error.strerror}")


def list_patterns(taken: Iterable[str]) -> list[Mapping[str, Any]]:
    """The node's own patterns, without those that the configuration sets."""
    texts = set(taken)
    return [pattern for pattern in (*PATTERNS, *DISPATCH_PATTERNS) if pattern["pattern"] not in texts]
