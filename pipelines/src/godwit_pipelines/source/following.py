"""Reads a stream only as far as the streams that it follows have landed.

A row of `deliveries` is judged by rows of `access` and `runs` that its node wrote before it. Each stream lands with a
query of its own, so between two commits the tables could have rows without those that they depend on. Therefore a stream
that follows others records its own end, and then the ends of the others; it is read up to its end once the checkpoints of
their queries have reached theirs. Invariant: when a row lands, the rows that it depends on have landed. A node writes
`access` before `deliveries`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .offsets import Passed, reached_by_run
from .parts import Journals
from .places import find_runs, last_batch
from .runs import Runs


@dataclass(frozen=True)
class Query:
    """The query that lands a followed stream: its checkpoint, and the landed offsets by node and run, until it has a new batch."""

    stream: str
    checkpoint: str
    starts: Mapping[str, Mapping[str, int]]

    def find_reached(self) -> dict[str, int]:
        """The offset after the last row of each run that has landed."""
        checkpoint = Path(self.checkpoint)
        if last_batch(checkpoint, "offsets") is None:
            starts = {node: [Passed(run, next) for run, next in runs.items()] for node, runs in self.starts.items()}
            return reached_by_run(starts)
        return reached_by_run(find_runs(checkpoint, self.stream))


@dataclass(frozen=True)
class _Note:
    """A node's rows up to `end` may be read once its other streams have landed up to here: a run, and the offset after its last row."""

    end: int
    needed: Mapping[str, tuple[str, int]]


class Following:
    """The state that one query keeps of the streams that it follows, while it runs."""

    def __init__(self, paths: str, queries: list[Query]) -> None:
        self.followed = [(query, Runs(Journals(paths, query.stream))) for query in queries]
        self.notes: dict[str, _Note] = {}
        self.reached: dict[str, int] = {}

    def reach(self, ends: Mapping[str, int]) -> dict[str, int]:
        """How far each node may be read. `ends` are the ends of its rows, read before this call."""
        nexts, reached = self._look(), {query.stream: query.find_reached() for query, _ in self.followed}
        for node, end in ends.items():
            note = self.notes.get(node)
            if note is None or _has_landed(note, reached):
                if note is not None:
                    self.reached[node] = note.end
                note = self.notes[node] = _Note(end, {stream: at[node] for stream, at in nexts.items() if node in at})
            if _has_landed(note, reached):
                self.reached[node] = note.end
        return {node: min(end, self.reached[node]) for node, end in ends.items() if node in self.reached}

    def _look(self) -> dict[str, dict[str, tuple[str, int]]]:
        """How far the streams reach that hold anything to land, by node: the last run, and the offset after its last row."""
        found: dict[str, dict[str, tuple[str, int]]] = {}
        for query, runs in self.followed:
            runs.journals.look()
            spans = {node: runs.spans(node) for node in runs.journals.folders}
            found[query.stream] = {node: (each[-1].run, each[-1].next) for node, each in spans.items() if each}
        return found


def _has_landed(note: _Note, reached: Mapping[str, Mapping[str, int]]) -> bool:
    return all(reached[stream].get(run, 0) >= next for stream, (run, next) in note.needed.items())


def to_option(queries: list[Query]) -> str:
    """The value of the source's option `follows`."""
    return json.dumps([[query.stream, query.checkpoint, query.starts] for query in queries])


def from_option(text: str) -> list[Query]:
    return [Query(*each) for each in json.loads(text)]
