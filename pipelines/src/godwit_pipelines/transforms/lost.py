"""Messages that the journal had and that no table has: where they stood.

Offsets of a node's messages follow each other. Where bronze.messages leaves some out, so many were let go by retention before they
landed, are damaged, or were erased. Of which subjects they were nobody knows: they are given as those that were erased are
(published.py), once by the arrivals that they may have had, without an epoch; and, without arrivals, how many they are at most, of their
run and of each epoch of it. Only where sums say that offsets are missing the messages are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyspark.sql import DataFrame

from .holes import find_holes
from .ranges import Range, clipped, count_offsets, merged, without
from .runs import Row, collect, list_began, make_small

ERASED = "node string, run string, epoch bigint, journal_offset bigint, arrival bigint, rows bigint"
_SIDES = ("run", "arrival")


@dataclass(frozen=True)
class Place:
    """Where a message stands that is there."""

    journal_offset: int
    run: str
    arrival: int


def add_lost(
    messages: DataFrame, sums: DataFrame, ends: list[Row], said: list[Row], erased: DataFrame | None
) -> DataFrame | None:
    """What was `erased`, and with it what is not there for another reason; `ends` and `said` as runs.py collects them."""
    nodes = list_holed(ends, said)
    if not nodes:
        return erased
    known = {node: list[Range]() for node in nodes}
    for row in collect(erased.select("node", "journal_offset", "rows")) if erased is not None else []:
        known.get(row["node"], []).append((row["journal_offset"], row["journal_offset"] + row["rows"]))
    known = {node: merged(ranges) for node, ranges in known.items()}
    epochs: dict[tuple[str, str], list[int]] = {}
    for row in collect(sums.select("node", "run", "epoch").distinct()):
        epochs.setdefault((row["node"], row["run"]), []).append(row["epoch"])
    began = list_began(said)
    lost = list[Row]()
    for node, left, right in find_holes(messages, nodes, _SIDES):
        before, after = Place(**left), Place(**right)
        hole = (before.journal_offset + 1, after.journal_offset)
        gone = without([hole], clipped(known[node], *hole))
        missing, places = count_offsets(gone), Counter[str]()
        for run, first, rows in place_hole(before, after, gone, began.get(node, [])):
            lost.append({"node": node, "run": run, "journal_offset": hole[0], "arrival": first, "rows": rows})
            places[run] += rows
        for run, rows in places.items():
            most = {"node": node, "run": run, "journal_offset": hole[0], "rows": min(rows, missing)}
            lost += [most, *({**most, "epoch": epoch} for epoch in epochs.get((node, run), []))]
    if not lost:
        return erased
    found = make_small(messages.sparkSession, lost, ERASED)
    return found if erased is None else erased.select(found.columns).unionByName(found)


def list_holed(ends: Iterable[Row], said: Iterable[Row]) -> list[str]:
    """The nodes with fewer messages than offsets, each row counted: one that landed twice, as `reconcile` says, may hide one that is
    missing. Those that have no runs are topics of Kafka, which leave offsets out.
    """
    spans: dict[str, tuple[int, int, int]] = {}
    for row in ends:
        first, last, rows = spans.get(row["node"], (row["first_journal_offset"], row["last_journal_offset"], 0))
        spans[row["node"]] = (
            min(first, row["first_journal_offset"]),
            max(last, row["last_journal_offset"]),
            rows + row["published"],
        )
    keeping = {row["node"] for row in said}
    return sorted(node for node, (first, last, rows) in spans.items() if node in keeping and rows <= last - first)


def place_hole(before: Place, after: Place, gone: list[Range], began: list[Row]) -> Iterator[tuple[str, int, int]]:
    """Run, first arrival and number of the places that messages may have had which a hole lacks: the offsets `gone`, those of it that were
    not erased. In one run arrivals follow each other as offsets do, unless standard messages took some; a hole over several holds all that
    each may have had, from where it began to where the next one says that it ended.
    """
    size = after.journal_offset - before.journal_offset - 1
    if not gone:
        return
    if before.run == after.run:
        if after.arrival - before.arrival != size + 1:
            gone = [(before.journal_offset + 1, before.journal_offset + after.arrival - before.arrival)]
        for first, next in gone:
            yield before.run, before.arrival + first - before.journal_offset, next - first
        return
    names = [row["run"] for row in began]
    if before.run in names and after.run in names:
        names = names[names.index(before.run) : names.index(after.run) + 1]
    else:
        names = [before.run, after.run]
    begins = {row["run"]: (row["follows_arrival"] or 0) + 1 for row in began}
    ended = {row["follows_run"]: row["follows_arrival"] for row in began}
    for run in names:
        if run == after.run:  # of one that does not say how it began, as if nothing but these had been there
            low, high = begins.get(run, max(1, after.arrival - size)), after.arrival - 1
        else:
            low = before.arrival + 1 if run == before.run else begins[run]
            high = low + size - 1 if ended.get(run) is None else ended[run]
        if low <= high:
            yield run, low, high - low + 1
