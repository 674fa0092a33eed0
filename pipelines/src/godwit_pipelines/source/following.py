"""A stream that is read no further than others have landed.

A row of `deliveries` is judged by rows of `access` and `runs` that its node wrote before it, and each stream lands by a query of its own:
whoever reads the tables between two commits would meet rows without those that they stand on. So a stream that follows others notes how far
it could be read, and after that how far the others reach; it is read up to there once their queries have come as far, by their checkpoints.
Invariant: what a row stands on has landed when the row lands. A node writes `access` before `deliveries`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .parts import Journals
from .places import find_place, last_batch


@dataclass(frozen=True)
class Query:
    """What lands a stream that another one follows: its checkpoint, and where it begins, by node, as long as that holds no batch."""

    stream: str
    checkpoint: str
    starts: Mapping[str, int]

    def find_place(self) -> Mapping[str, int]:
        checkpoint = Path(self.checkpoint)
        return self.starts if last_batch(checkpoint, "offsets") is None else find_place(checkpoint, self.stream)


@dataclass(frozen=True)
class _Note:
    """A node's rows up to `end` may be read once its other streams have landed up to here."""

    end: int
    needed: Mapping[str, int]


class Following:
    """What one query remembers of the streams that it follows, for as long as it runs."""

    def __init__(self, paths: str, queries: list[Query]) -> None:
        self.followed = [(query, Journals(paths, query.stream)) for query in queries]
        self.notes: dict[str, _Note] = {}
        self.reached: dict[str, int] = {}

    def reach(self, ends: Mapping[str, int]) -> dict[str, int]:
        """How far each node may be read, whose rows reach up to `ends`: seen before this is asked."""
        nexts, places = self._look(), {query.stream: query.find_place() for query, _ in self.followed}
        for node, end in ends.items():
            note = self.notes.get(node)
            if note is None or _has_landed(node, note, places):
                if note is not None:
                    self.reached[node] = note.end
                note = self.notes[node] = _Note(end, {stream: at[node] for stream, at in nexts.items() if node in at})
            if _has_landed(node, note, places):
                self.reached[node] = note.end
        return {node: min(end, self.reached[node]) for node, end in ends.items() if node in self.reached}

    def _look(self) -> dict[str, dict[str, int]]:
        """How far the streams reach that hold anything to land, by node."""
        found: dict[str, dict[str, int]] = {}
        for query, journals in self.followed:
            journals.look()
            held = journals.folders.items()
            found[query.stream] = {node: folder.next for node, folder in held if folder.first < folder.next}
        return found


def _has_landed(node: str, note: _Note, places: Mapping[str, Mapping[str, int]]) -> bool:
    return all(places[stream].get(node, 0) >= next for stream, next in note.needed.items())


def to_option(queries: list[Query]) -> str:
    """As the source's option `follows`."""
    return json.dumps([[query.stream, query.checkpoint, dict(query.starts)] for query in queries])


def from_option(text: str) -> list[Query]:
    return [Query(*each) for each in json.loads(text)]
