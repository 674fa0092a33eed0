"""The audit finds every planted fault, and no other."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row as SparkRow
from pyspark.sql import SparkSession

from tests.pipelines.transforms.audited import Audited, Scene, read_faults, run_audit, scene_of
from tests.pipelines.transforms.checker import MICROS, Case, Found, draw_case, find

CASES, SEED = 250, 2026


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    lots = random.Random(SEED)
    return [draw_case(number, lots) for number in range(1, CASES + 1)]


@pytest.fixture(scope="module")
def audited(session: SparkSession, cases: list[Case]) -> Audited:
    scenes = {
        "drawn": scene_of(cases),
        "resumed, all handed over": across_a_restart(count=7),
        "resumed, one short": across_a_restart(count=6),
        "retained": what_is_left(first_offset=5),
        "never published": what_is_left(first_offset=0),
        "not landed": half_landed(),
        "one damaged": around_a_hole(),
        "few of many": among_standard_messages(),
        "rows lost": without_rows_that_the_disk_lost(),
        "dealt": dealt_to_a_group(twice=0),
        "dealt twice": dealt_to_a_group(twice=1),
    }
    return run_audit(session, scenes)


def across_a_restart(*, count: int) -> Scene:
    """Run b follows a, of which arrivals up to 6 are there; it handed over 8, and b hands 5 to 12 to who stood at 4. Its own begin at 8."""
    runs = [
        {"run": "a", "journal_offset": 0, "kind": "began", "epoch": 1},
        {"run": "b", "journal_offset": 1, "kind": "began", "epoch": 2, "follows_run": "a"}
        | {"follows_arrival": 6, "follows_clean": False},
    ]
    messages = [
        {"run": run, "subject": "/a/x", "epoch": epoch, "sequence": arrival, "arrival": arrival}
        for run, epoch, arrivals in (("a", 1, range(1, 7)), ("b", 2, range(8, 13)))
        for arrival in arrivals
    ]
    whose = {"selector": "/a/*", "is_pattern": True, "gap_count": 0, "connection": 1}
    deliveries = [
        whose | {"run": "a", "journal_offset": 0, "arrival_run": "a", "from_arrival": 1, "to_arrival": 8, "count": 8},
        whose | {"run": "b", "journal_offset": 1, "arrival_run": "a", "to_arrival": 4, "confirmed": True},
        whose
        | {"run": "b", "journal_offset": 2, "arrival_run": "b", "from_arrival": 5, "to_arrival": 12, "count": count},
    ]
    return Scene(deliveries, messages, runs)


def test_who_resumes_across_a_restart_is_measured_on_the_arrivals_of_both_runs(audited: Audited) -> None:
    def faults_of(scene: str) -> list[tuple[str, int, str]]:
        return sorted((row.kind, row.messages, row.cause) for row in audited.faults[scene])

    cut = ("unpublished", 2, "the run was cut short")
    assert faults_of("resumed, all handed over") == [cut]
    assert faults_of("resumed, one short") == [("hole", 1, ""), cut]


def what_is_left(*, first_offset: int) -> Scene:
    """Of all messages those with arrivals 6 to 12 of run b are left; run a was on its own before."""
    runs = [
        {"run": run, "journal_offset": number, "kind": "began", "epoch": number + 1, "time": MICROS}
        for number, run in enumerate("ab")
    ]
    place = {"run": "b", "subject": "/a/x", "epoch": 2, "time": MICROS}
    messages = [
        place | {"sequence": arrival, "arrival": arrival, "journal_offset": first_offset + arrival - 6}
        for arrival in range(6, 13)
    ]
    whose = {"selector": "/a/*", "is_pattern": True, "gap_count": 0, "gaps": 0, "time": MICROS, "connection": 1}
    deliveries = [
        whose
        | {
            "run": run,
            "journal_offset": number,
            "arrival_run": run,
            "count": count,
            "from_arrival": begin,
            "to_arrival": end,
        }
        for number, (run, begin, end, count) in enumerate((("a", 1, 3, 3), ("b", 1, 8, 8), ("b", 9, 12, 3)))
    ]
    return Scene(deliveries, messages, runs)


def test_what_was_handed_over_before_the_first_message_that_is_left_is_not_judged(audited: Audited) -> None:
    def faults_of(scene: str) -> list[tuple[str, int]]:
        return sorted((row.kind, row.messages) for row in audited.faults[scene])

    assert faults_of("retained") == [("hole", 1)]
    assert faults_of("never published") != [("hole", 1)]  # nothing was let go: those were never published


def half_landed() -> Scene:
    """More was handed over than was published, as far as is known."""
    runs = [{"run": "a", "journal_offset": 0, "kind": "began", "epoch": 1, "time": MICROS}]
    messages = [
        {"run": "a", "subject": "/a/x", "epoch": 1, "sequence": place, "arrival": place}
        | {"journal_offset": place - 1, "time": MICROS + place}
        for place in range(1, 7)
    ]
    whose = {"run": "a", "gap_count": 0, "gaps": 0, "time": MICROS + 100}
    deliveries = [
        whose
        | {"connection": 1, "selector": "/a/*", "is_pattern": True, "arrival_run": "a", "journal_offset": begin}
        | {"from_arrival": begin, "to_arrival": end, "count": end - begin + 1}
        for begin, end in ((1, 4), (5, 9), (10, 12))
    ]
    deliveries.append(
        whose
        | {"connection": 2, "selector": "/a/x", "is_pattern": False, "epoch": 1, "journal_offset": 20}
        | {"from_sequence": 1, "to_sequence": 8, "count": 8}
    )
    return Scene(deliveries, messages, runs)


def test_what_was_handed_over_may_land_before_what_was_published(audited: Audited) -> None:
    found = audited.faults["not landed"]
    assert sorted((row.connection, row.kind, row.messages, row.cause) for row in found) == [
        (1, "unpublished", 3, "not landed yet"),
        (1, "unpublished", 3, "not landed yet"),
        (2, "unpublished", 2, "not landed yet"),
    ]
    assert {(row.reported, row.faults, row.verdict) for row in audited.verdicts["not landed"]} == {(0, 0, "proven")}


def around_a_hole() -> Scene:
    """Of a subject whose message 110 is damaged, and of which retention let go of those up to 100, what is known is 101 to 120."""
    messages = [
        {"run": "a", "subject": "/a/x", "epoch": 1, "sequence": place, "arrival": place}
        | {"journal_offset": place - 1, "time": MICROS + place}
        for place in range(101, 121)
        if place != 110
    ]
    whose = {"run": "a", "gap_count": 0, "gaps": 0, "epoch": 1, "connection": 1, "selector": "/a/x"}
    deliveries = [
        whose
        | {"from_sequence": begin, "to_sequence": end, "count": count, "journal_offset": begin, "time": MICROS + 200}
        for begin, end, count in ((80, 90, 11), (91, 105, 15), (106, 115, 10), (116, 120, 4), (121, 125, 5))
    ]
    deliveries.append(deliveries[2] | {"connection": 2, "journal_offset": 200, "count": 12})
    return Scene(deliveries, messages, [{"run": "a", "journal_offset": 0, "kind": "began", "epoch": 1, "time": MICROS}])


def test_of_a_subject_with_a_damaged_message_the_places_outside_of_what_is_known_count_as_they_are(
    audited: Audited,
) -> None:
    found = audited.faults["one damaged"]
    assert sorted((row.journal_offset, row.kind, row.messages, row.cause) for row in found) == [
        (116, "hole", 1, ""),
        (121, "unpublished", 4, "not landed yet"),  # one of them may be the one that is damaged
        (200, "repeat", 2, ""),
    ]


def among_standard_messages() -> Scene:
    """One message is lost amid a thousand standard ones, which take arrivals and are not written down."""
    places = [1, 2, 3, 1003, 1004, 1005]
    messages = [
        {"run": "a", "subject": "/a/x", "epoch": 1, "sequence": at + 1, "arrival": place}
        | {"journal_offset": at + at // 3}
        | {"time": MICROS}
        for at, place in enumerate(places)
    ]
    whose = {
        "run": "a",
        "gap_count": 0,
        "gaps": 0,
        "time": MICROS,
        "selector": "/a/*",
        "is_pattern": True,
        "arrival_run": "a",
    }
    deliveries = [
        whose
        | {
            "connection": connection,
            "journal_offset": connection,
            "from_arrival": 1,
            "to_arrival": 1005,
            "count": count,
        }
        for connection, count in ((1, 6), (2, 7), (3, 9))
    ]
    return Scene(deliveries, messages, [{"run": "a", "journal_offset": 0, "kind": "began", "epoch": 1, "time": MICROS}])


def test_no_more_may_be_missing_than_there_were_messages(audited: Audited) -> None:
    found = audited.faults["few of many"]
    assert [(row.connection, row.kind, row.messages) for row in found] == [(3, "repeat", 2)]


def dealt_to_a_group(*, twice: int) -> Scene:
    """A group's rows are written by several cores: the later range first, and one between them that only reports a loss."""
    subjects = ["/a/x", "/b", "/a/y"] * 4
    messages = [
        {"run": "a", "subject": subject, "epoch": 1, "sequence": at // 3 + 1, "arrival": at + 1}
        for at, subject in enumerate(subjects)
    ]
    whose = {"run": "a", "connection": -1, "selector": "$share/workers/a/*", "is_pattern": True, "arrival_run": "a"}
    spans = [(7, 12, 4 + twice, 0), (4, 3, 0, 1), (1, 3, 2, 0), (4, 6, 1, 1)]
    deliveries = [
        whose
        | {
            "journal_offset": offset,
            "from_arrival": first,
            "to_arrival": last,
            "count": count,
            "gaps": gaps,
            "gap_count": gaps,
        }
        for offset, (first, last, count, gaps) in enumerate(spans)
    ]
    return Scene(deliveries, messages, [{"run": "a", "journal_offset": 0, "kind": "began", "epoch": 1}])


def test_a_group_is_judged_in_the_order_of_its_ranges(audited: Audited) -> None:
    assert [(row.kind, row.messages, row.declared) for row in audited.faults["dealt"]] == [("gap", 1, True)]
    assert ("repeat", 1, False) in [(row.kind, row.messages, row.declared) for row in audited.faults["dealt twice"]]


def without_rows_that_the_disk_lost() -> Scene:
    """Rows of access were lost to the disk, of one of two runs."""
    runs = [
        {"run": run, "journal_offset": number * 2, "kind": "began", "epoch": number + 1, "time": MICROS}
        for number, run in enumerate("ab")
    ]
    runs.append({"run": "a", "journal_offset": 1, "kind": "lost", "stream": "access", "epoch": 1, "time": MICROS})
    messages = [
        {"run": run, "subject": "/a/x", "epoch": epoch, "sequence": place, "arrival": place, "journal_offset": offset}
        | {"time": MICROS + 200}
        for offset, (epoch, run, place) in enumerate((e, r, p) for e, r in ((1, "a"), (2, "b")) for p in range(1, 11))
    ]
    whose = {"gap_count": 0, "gaps": 0, "connection": 1, "selector": "/a/x", "time": MICROS}
    deliveries = [
        whose
        | {"run": run, "epoch": epoch, "journal_offset": epoch * 10 + begin, "count": end - begin + 1}
        | {"from_sequence": begin, "to_sequence": end}
        for epoch, run in ((1, "a"), (2, "b"))
        for begin, end in ((1, 4), (3, 10))
    ]
    return Scene(deliveries, messages, runs)


def test_what_the_disk_lost_excuses_what_came_twice_too(audited: Audited) -> None:
    found = audited.faults["rows lost"]
    assert sorted((row.run, row.kind, row.messages, row.cause) for row in found) == [
        ("a", "repeat", 2, "the journal lost rows"),
        ("b", "repeat", 2, ""),
    ]
    verdict = audited.verdicts["rows lost"][0]
    assert (verdict.reported, verdict.excused, verdict.repeats, verdict.verdict) == (0, 2, 2, "broken")


def check(cases: list[Case], rows: list[SparkRow]) -> None:
    found = read_faults(rows)
    wrong = [case for case in cases if found.get(case.number, Counter()) != find(case)]
    if wrong:
        least = min(wrong, key=lambda case: len(case.rows))
        faults_of = "\n".join(str({k: v for k, v in row.items() if v not in (None, "")}) for row in least.rows)
        pytest.fail(
            f"{len(wrong)} of {len(cases)}; the shortest:\n{least.published}\n{faults_of}\n"
            f"found {found.get(least.number)}\nis {find(least)}"
        )


def test_every_fault_is_found_and_none_is_invented(audited: Audited, cases: list[Case]) -> None:
    check(cases, audited.faults["drawn"])


@pytest.mark.long
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_every_fault_is_found_in_many_more(spark: SparkSession, seed: int) -> None:
    lots = random.Random(seed)
    drawn = [draw_case(number, lots) for number in range(1, CASES + 1)]
    check(drawn, run_audit(spark, {"drawn": scene_of(drawn)}).faults["drawn"])


def test_an_hour_of_a_selector_is_broken_told_or_proven_as_its_faults_say(audited: Audited, cases: list[Case]) -> None:
    def state(found: Found) -> str:
        if any(not declared for _, _, declared in found):
            return "broken"
        return "reported" if found else "proven"

    expected = {case.selector: state(find(case)) for case in cases if case.rows}
    faults_of = {row.selector: row.verdict for row in audited.verdicts["drawn"]}
    assert faults_of == expected and set(faults_of.values()) == {"broken", "reported", "proven"}
    sums = [sum(row[name] for row in audited.verdicts["drawn"]) for name in ("messages", "ranges")]
    handed = [row for case in cases for row in case.rows]
    assert sums == [sum(row["count"] for row in handed), sum(not row["confirmed"] for row in handed)]  # type: ignore[misc]  # a checker's rows hold anything


def test_a_subscription_is_in_order_unless_something_of_it_is_wrong(audited: Audited, cases: list[Case]) -> None:
    in_order: dict[int, bool] = {}
    for row in audited.ranges["drawn"]:
        in_order[row.connection] = in_order.get(row.connection, True) and row.in_order
    assert in_order == {case.number: all(key[2] for key in find(case)) for case in cases if case.rows}


TakeOut = Callable[[list[Case], random.Random], Scene]


def list_skipping(cases: list[Case]) -> list[Case]:
    """Those of a subject whose numbering skips."""
    subjects = [case for case in cases if not case.is_pattern]
    return [case for case in subjects if any(each != [*range(1, len(each) + 1)] for each in case.published.values())]


def erase(cases: list[Case], lots: random.Random) -> Scene:
    """The cases' scene, without messages of whom was erased: of a few all, of others some. Subjects whose numbering skips stay whole."""
    whole, skipping = scene_of(cases), {case.selector for case in list_skipping(cases)}
    parts = {case.number: lots.choice((0, 0, 0.1, 0.4, 1)) for case in cases}
    gone = [
        row["subject"] not in skipping and lots.random() < parts[int(str(row["subject"]).split("/")[2])]
        for row in whole.messages
    ]
    left = [row for row, is_gone in zip(whole.messages, gone, strict=True) if not is_gone]
    erased = [row for row, is_gone in zip(whole.messages, gone, strict=True) if is_gone]
    return Scene(whole.deliveries, left, access=whole.access, erased=erased)


def check_erased(audited: Audited, cases: list[Case]) -> None:
    """None of the faults is invented, and what is called proven was no fault before."""
    found = read_faults(audited.faults["drawn"])
    verdicts = {row.selector: row.verdict for row in audited.verdicts["drawn"]}
    broken = {case.number for case in cases if any(not key[2] for key in find(case))}
    invented = {number for number, faults in found.items() if any(not key[2] for key in faults)} - broken
    assert not invented, {number: found[number] for number in invented}
    for case in cases:
        if case.rows and case.number in broken:
            assert verdicts[case.selector] in ("broken", "unproven"), (case, verdicts[case.selector])
    assert set(verdicts.values()) == {"broken", "unproven", "reported", "proven"}


def test_what_was_erased_makes_no_fault_and_hides_none_as_proven(spark: SparkSession, cases: list[Case]) -> None:
    check_erased(run_audit(spark, {"drawn": erase(cases, random.Random(SEED))}), cases)


def lose(cases: list[Case], lots: random.Random) -> Scene:
    """The cases' scene, without messages that retention let go of before they landed: some stretches of the journal, each amid others. Of
    subjects whose numbering skips the ends are there: how many there were outside of them nobody could tell.
    """
    whole = scene_of(cases)
    ends = {
        (case.selector, term, places[at])
        for case in list_skipping(cases)
        for term, places in case.published.items()
        for at in (0, -1)
    }
    order = sorted(whole.messages, key=lambda row: (row["run"], row["arrival"]))
    rows = [{**row, "journal_offset": offset} for offset, row in enumerate(order)]
    begins = [lots.randrange(1, len(rows) - 1) for _ in range(12)]
    gone = {offset for begin in begins for offset in range(begin, min(begin + lots.choice((1, 3, 20)), len(rows) - 1))}
    left = [
        row
        for row in rows
        if row["journal_offset"] not in gone or (row["subject"], row["epoch"], row["sequence"]) in ends
    ]
    began = [{"run": "none", "kind": "began", "journal_offset": 0}]
    return Scene(whole.deliveries, left, access=whole.access, runs=began)


def test_what_never_landed_makes_no_fault_and_hides_none_as_proven(spark: SparkSession, cases: list[Case]) -> None:
    check_erased(run_audit(spark, {"drawn": lose(cases, random.Random(SEED))}), cases)


@pytest.mark.long
@pytest.mark.parametrize("take_out", [erase, lose])
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_what_is_not_there_makes_no_fault_in_many_more(spark: SparkSession, take_out: TakeOut, seed: int) -> None:
    lots = random.Random(seed)
    drawn = [draw_case(number, lots) for number in range(1, CASES + 1)]
    check_erased(run_audit(spark, {"drawn": take_out(drawn, lots)}), drawn)
