"""The audit again, message by message and in plain Python: slow, obvious, and not by the same thought as the transform.

Owns random little journals and what must be found in them. Each case is a connection of its own, so that many are
checked by one Spark job.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

MICROS = 1_795_250_000_000_000
PLACES_A_CASE = 10_000
Row = dict[str, object]
Found = Counter[tuple[int, str, bool]]
"""Messages by offset of the range, kind of fault, and whether it was declared."""


@dataclass
class Case:
    """One connection's subscription: what was published on its lanes (places by term), the ranges it was handed, and
    when it subscribed, where it did so more than once.
    """

    number: int
    is_pattern: bool
    published: dict[int, list[int]]
    rows: list[Row] = field(default_factory=list)
    access: list[Row] = field(default_factory=list)

    @property
    def selector(self) -> str:
        return f"/case/{self.number}/*" if self.is_pattern else f"/case/{self.number}/only"

    def run_of(self, term: int) -> str:
        return f"a{term}"


def draw_case(number: int, lots: random.Random) -> Case:
    """A journal with anything wrong in it, or nothing."""
    is_pattern = lots.random() < 0.4
    skips = is_pattern or lots.random() < 0.3
    published = {}
    for term in range(1, lots.randint(1, 3) + 1):
        base = number * PLACES_A_CASE if is_pattern else 0
        count = lots.randint(3, 40)
        among = range(base + 1, base + (2 * count if skips else count) + 1)
        places = sorted(lots.sample(among, count))
        published[term] = sorted({1, *places} if not is_pattern else places) if skips else list(range(1, count + 1))
    case = Case(number, is_pattern, published)
    calm = lots.random() < 0.3
    _draw_rows(case, lots, calm)
    return case


def _draw_rows(case: Case, lots: random.Random, calm: bool) -> None:
    term, at = 1, 0  # at: how many of the term's places have been handed over
    if lots.random() < 0.4:
        at = lots.randint(0, len(case.published[1]) - 1)
        case.rows.append(
            _row(case, term, None, case.published[1][at - 1] if at else case.published[1][0] - 1, confirmed=True)
        )
    for _ in range(lots.randint(1, 9)):
        places = case.published[term]
        if case.rows and lots.random() < 0.03:
            at = lots.randint(1, len(places))
            _subscribe_again(case, _row(case, term, None, places[at - 1], confirmed=True))
        reported = told_gaps = 0
        if at >= len(places) or (not calm and lots.random() < 0.08):
            other = lots.choice(list(case.published)) if not calm else term + 1
            if other not in case.published:
                break
            told_gaps = lots.randint(0, 1) if not calm and term != other else 0
            term, at = other, at if other == term else 0
            places = case.published[term]
        first = at
        if not calm and lots.random() < 0.25:
            first = max(0, at + lots.choice((-6, -3, -1, 1, 2, 5)))
        if first >= len(places):
            continue
        last = min(len(places), first + lots.randint(1, 7)) - 1
        count, conflated = last - first + 1, 0
        if lots.random() < 0.2:
            conflated = lots.randint(0, count - 1)
            count -= conflated
        if not calm and lots.random() < 0.2:
            count = max(0, count + lots.choice((-2, -1, 1)))
        if not told_gaps and lots.random() < (0.3 if not calm else 0):
            told_gaps, reported = 1, lots.randint(1, 4)
        if calm and lots.random() < 0.3 and count > 1:  # a true gap, counted right
            told_gaps, reported = 1, lots.randint(1, count - 1)
            count -= reported
        gap_count = None if told_gaps and (not reported or lots.random() < 0.2) else reported
        row = _row(case, term, places[first], places[last], count=count, conflated=conflated)
        case.rows.append(row | {"gaps": told_gaps, "gap_count": gap_count})
        at = max(at, last + 1) if first <= at else last + 1


def _subscribe_again(case: Case, tracker: Row) -> None:
    """The row that says where the client stands begins another chain."""
    whose = {"node": "n", "run": "a1", "kind": "subscribed", "connection": case.number, "selector": case.selector}
    if not case.access:
        case.access.append(whose | {"time": MICROS - 1})
    case.access.append(whose | {"time": tracker["time"]})
    case.rows.append(tracker)


def _row(
    case: Case, term: int, begin: int | None, end: int, *, count: int = 0, conflated: int = 0, confirmed: bool = False
) -> Row:
    ends = {
        "from_sequence": begin,
        "to_sequence": end,
        "from_arrival": None,
        "to_arrival": None,
        "epoch": term,
        "arrival_run": None,
    }
    if case.is_pattern:
        ends = {
            **{"from_sequence": None, "to_sequence": None, "from_arrival": begin, "to_arrival": end},
            **{"epoch": None, "arrival_run": case.run_of(term)},
        }
    number = len(case.rows)
    return {
        **{
            "node": "n",
            "run": "a1",
            "tenant": "t",
            "journal_offset": case.number * 100 + number,
            "time": MICROS + number * 1_000_000,
        },
        **{
            "connection": case.number,
            "identity": "",
            "client": "",
            "selector": case.selector,
            "is_pattern": case.is_pattern,
        },
        **ends,
        **{
            "count": count,
            "bytes": count * 10,
            "conflated": conflated,
            "gaps": 0,
            "gap_count": 0,
            "confirmed": confirmed,
            "crc": 0,
        },
    }


def message_rows(case: Case) -> list[Row]:
    """What was published, as the journal has it. A pattern's messages are dealt to three subjects."""
    rows: list[Row] = []
    for term, places in case.published.items():
        for place in places:
            subject = f"/case/{case.number}/{place % 3}" if case.is_pattern else case.selector
            numbers = {"epoch": term, "sequence": place, "arrival": case.number * PLACES_A_CASE + 5_000 + len(rows)}
            if case.is_pattern:
                numbers = {"epoch": 1, "sequence": len(rows) + 1, "arrival": place}
            run = case.run_of(term) if case.is_pattern else "a1"
            rows.append({"node": "n", "run": run, "subject": subject, "time": MICROS + 3_600_000_000, **numbers})
    return rows


def find(case: Case) -> Found:
    """What must be found, one message after the other."""
    found: Found = Counter()
    # every jump ahead: its row, and the places that are still missing; nothing fills those of an earlier chain
    gaps, settled = list[dict[str, object]](), list[dict[str, object]]()
    seen: set[int] = set()
    term, reached, left = None, None, set()
    for index, row in enumerate(case.rows):
        places = case.published[row["epoch"] or int(str(row["arrival_run"])[1:])]
        offset, count = row["journal_offset"], row["gap_count"]
        reported = row["gaps"] and (10**9 if count is None else count)
        now = row["epoch"] or row["arrival_run"]
        kind = "arrival" if case.is_pattern else "sequence"
        lo, hi = row[f"from_{kind}"], row[f"to_{kind}"]
        before = case.rows[index - 1] if index else None
        if row["confirmed"]:
            term, reached, seen = now, hi, {place for place in places if place <= hi}
            left, settled, gaps = {now}, settled + gaps, []
            continue
        mine = [place for place in places if lo <= place <= hi]
        across = 0
        set_back = (
            before is not None and before["confirmed"] and now == term and row["gaps"] and mine and mine[0] <= reached
        )
        if now != term:
            if term is not None and now in left:
                found[offset, "epoch_regress", False] += max(1, row["count"])
            elif term is not None:
                old = case.published[term if not case.is_pattern else int(str(term)[1:])]
                across = sum(place > reached for place in old) + sum(place < lo for place in places)
            left = left | {now}
        if now != term or set_back:
            term, reached, seen = now, None, set()
        if across:
            reported = 10**9 if row["gaps"] else 0
        jumped = [place for place in places if reached is not None and reached < place < lo]
        back = [place for place in mine if reached is not None and place <= reached]
        for place in back:
            found[offset, "repeat" if place in seen else "reorder", False] += 1
            for gap in gaps:
                gap["missing"].discard((term, place))
        lacking = len(mine) - row["count"] - row["conflated"]
        if case.is_pattern and lacking < 0:  # merged messages may hold what came before the range
            lacking = min(0, lacking + row["conflated"])
        gaps.append({"at": offset, "missing": {(term, place) for place in jumped}, "across": across, "told": reported})
        told_inside = min(max(0, reported - len(jumped) - across), max(0, lacking))
        found[offset, "gap", True] += told_inside
        found[offset, "hole", False] += max(0, lacking) - told_inside
        found[offset, "repeat", False] += max(0, -lacking)
        if row["gaps"] and row["gap_count"] is not None and not across and not case.is_pattern:
            unseen = hi - (lo - 1 if reached is None else reached) - len(jumped) - len(mine)
            _tell_more(found, offset, max(0, row["gap_count"] - len(jumped) - max(0, lacking)), max(0, unseen))
        seen |= set(mine)
        reached = max([*mine, reached or 0, *([lo - 1] if not mine else [])])
    for gap in settled + gaps:
        missing = len(gap["missing"]) + gap["across"]
        declared = min(gap["told"], missing)
        found[gap["at"], "gap", True] += declared
        found[gap["at"], "gap", False] += missing - declared
    return Counter({key: count for key, count in found.items() if count})


def _tell_more(found: Found, offset: int, more: int, unseen: int) -> None:
    """More messages were reported missing than were. The node can know messages at positions that no row shows, as after damage."""
    found[offset, "gap", True] += min(more, unseen)
    found[offset, "miscount", False] += max(0, more - unseen)
