"""Messages that the journal had and that no table has: where they stood.

Offsets of a node's messages follow each other. Where bronze.messages leaves some out, so many were let go by retention before they
landed, are damaged, or were erased. Before the first that is there they count where all of them are damaged or were erased: what
retention let go of there is left out by published.py. Of which subjects they were nobody knows: they are given as those that were
erased are (published.py), once by the arrivals that they may have had, without an epoch; and, without arrivals, how many they are at
most, of their run and of each epoch of it. Only where sums say that offsets are missing the messages are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from pyspark.sql import DataFrame

from .holes import find_holes, list_holed
from .ranges import Range, clipped, count_offsets, merged, without
from .runs import Row, collect, link_runs, list_began, list_between, list_follows, make_small

ERASED = "node string, run string, epoch bigint, journal_offset bigint, arrival bigint, rows bigint"
_SIDES = ("arrival",)
_FAR = 1 << 53
"""More than the arrivals of any run: where a line ends of which no message is there."""
Damaged = Mapping[tuple[str, str], Sequence[Range]]
"""Offsets of messages that are in quarantine, by node and run; those of which no run is known have the run ""."""


@dataclass(frozen=True)
class Place:
    """The location of a message that the table has."""

    journal_offset: int
    run: str
    arrival: int


def add_lost(
    messages: DataFrame,
    sums: DataFrame,
    ends: list[Row],
    said: list[Row],
    erased: DataFrame | None,
    damaged: Damaged | None = None,
) -> DataFrame | None:
    """What was `erased`, and with it what is not there for another reason; `ends` and `said` as runs.py collects them."""
    follows = list_follows(said)
    nodes = list_holed_nodes(ends, said)
    if not nodes and not damaged:
        return erased
    known: dict[tuple[str, str], list[Range]] = {}
    for row in collect(erased.select("node", "run", "journal_offset", "rows")) if erased is not None else []:
        of = known.setdefault((row["node"], row["run"] or ""), [])
        of.append((row["journal_offset"], row["journal_offset"] + row["rows"]))
    epochs: dict[tuple[str, str], list[int]] = {}
    for row in collect(sums.select("node", "run", "epoch").distinct()):
        epochs.setdefault((row["node"], row["run"]), []).append(row["epoch"])
    began = list_began(said)
    lost, erased_of = list[Row](), dict[tuple[str, ...], list[Range]]()
    holes = find_holes(messages, nodes, _SIDES, follows) if nodes else iter(())
    sides = ((node, Place(**left), Place(**right)) for node, left, right in holes)
    for node, before, after in chain(find_heads(ends, said, known, damaged or {}), sides):
        hole = (before.journal_offset + 1, after.journal_offset)
        between = list_between(before.run, after.run, follows.get(node, {}))
        if (lane := (node, *between)) not in erased_of:
            erased_of[lane] = merged(chain(*(known.get((node, run), []) for run in ("", *between))))
        gone = without([hole], clipped(erased_of[lane], *hole))
        missing, places = count_offsets(gone), Counter[str]()
        for run, first, rows in place_hole(before, after, gone, began.get(node, []), between):
            lost.append({"node": node, "run": run, "journal_offset": hole[0], "arrival": first, "rows": rows})
            places[run] += rows
        for run, rows in places.items():
            most = {"node": node, "run": run, "journal_offset": hole[0], "rows": min(rows, missing)}
            lost += [most, *({**most, "epoch": epoch} for epoch in epochs.get((node, run), []))]
    if not lost:
        return erased
    found = make_small(messages.sparkSession, lost, ERASED)
    return found if erased is None else erased.select(found.columns).unionByName(found)


def find_heads(
    ends: Iterable[Row], said: Iterable[Row], known: Damaged, damaged: Damaged
) -> Iterator[tuple[str, Place, Place]]:
    """The first message that is there of each line of runs, where all that stood before it are `known` to be erased or are damaged; and
    as what stands before those the beginning of the journal. Of a line without any message it is the end of what is damaged.
    """
    firsts: dict[str, dict[str, Place]] = {}
    for row in ends:
        place = Place(row["first_journal_offset"], row["run"], row["first_arrival"])
        firsts.setdefault(row["node"], {})[row["run"]] = place
    for node, (root, first, between) in list_first(firsts, said):
        gone = merged(chain(*(of.get((node, run), ()) for of in (known, damaged) for run in ("", *between))))
        if not gone or gone[0][0] > 0:
            continue
        if first is None:
            yield node, Place(-1, root, 0), Place(gone[0][1], between[-1], _FAR)
        elif first.journal_offset > 0 and gone[0][1] >= first.journal_offset:
            yield node, Place(-1, root, 0), first


def list_first(
    firsts: Mapping[str, Mapping[str, Place]], said: Iterable[Row]
) -> Iterator[tuple[str, tuple[str, Place | None, list[str]]]]:
    """By node, of each line of runs that says how it began, its first run, its first message, and the runs up to that one; all of them
    where no message is there.
    """
    for node, linked in link_runs(said).items():
        root_of, before = dict[str, str](), dict[str, str | None]()
        found: dict[str, Place | None] = {}
        runs_of: dict[str, list[str]] = {}
        for row, follows in linked:
            run = row["run"]
            root = run if row["follows_run"] is None else root_of.get(follows or "")
            if root is None:
                continue
            root_of[run], before[run] = root, follows
            runs_of.setdefault(root, []).append(run)
            place, known = firsts.get(node, {}).get(run), found.setdefault(root, None)
            if place is not None and (known is None or place.journal_offset < known.journal_offset):
                found[root] = place
        for root, place in found.items():
            yield node, (root, place, runs_of[root] if place is None else _list_path(place.run, before))


def _list_path(run: str, before: Mapping[str, str | None]) -> list[str]:
    """The runs from the first of a line to one of it."""
    path, at = list[str](), before.get(run)
    while at is not None:
        path.append(at)
        at = before.get(at)
    return [*reversed(path), run]


def list_holed_nodes(ends: Iterable[Row], said: Iterable[Row]) -> list[str]:
    """The nodes with fewer messages than offsets. Those that have no runs are topics of Kafka, which leave offsets out."""
    said = list(said)
    keeping = {row["node"] for row in said}
    spans = [{**row, "rows": row["published"]} for row in ends if row["node"] in keeping]
    return list_holed(spans, list_follows(said))


def place_hole(
    before: Place, after: Place, gone: list[Range], began: list[Row], between: Sequence[str]
) -> Iterator[tuple[str, int, int]]:
    """Run, first arrival and number of the places that messages may have had which a hole lacks: the offsets `gone`, those of it that were
    not erased. In one run arrivals follow each other as offsets do, unless standard messages took some; a hole over several holds all that
    each may have had, from where it began to where the next one says that it ended: `between` are its runs, in order.
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
    begins = {row["run"]: (row["follows_arrival"] or 0) + 1 for row in began}
    # Several runs may follow one, after a copy: only the next run of this journal says where this one ended.
    follows = {row["run"]: (row["follows_run"], row["follows_arrival"]) for row in began}
    ended = dict(follows[next] for run, next in pairwise(between) if next in follows and follows[next][0] == run)
    for run in between:
        if run == after.run:  # of one that does not say how it began, as if nothing but these had been there
            low, high = begins.get(run, max(1, after.arrival - size)), after.arrival - 1
        else:
            low = before.arrival + 1 if run == before.run else begins[run]
            high = low + size - 1 if ended.get(run) is None else ended[run]
        if low <= high:
            yield run, low, high - low + 1
