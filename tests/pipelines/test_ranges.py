"""Compares landed rows with the journals: every offset is in exactly one finding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from godwit_pipelines.jobs.ranges import Extent, compare, extents_of, find_lost, reached_by
from godwit_pipelines.source.extents.lost import Lost
from godwit_pipelines.transforms.ranges import Range, clipped, count_offsets, merged, widened, without


def ranges_of(offsets: set[int]) -> list[Range]:
    """The same as `merged` of single offsets, by another thought."""
    begins, ends = (sorted(at for at in offsets if at - step not in offsets) for step in (1, -1))
    found = [(begin, end + 1) for begin, end in zip(begins, ends, strict=True)]
    assert merged((at, at + 1) for at in offsets) == found
    return found


def kinds(
    held: Extent, landed: list[Extent], missing: Sequence[tuple[int, int]] = (), quarantined: Sequence[int] = ()
) -> set[tuple[str, int, int]]:
    return {
        (found.kind, found.first, found.next)
        for found in compare("messages", "a", held, missing, landed, [Lost(at, at + 1) for at in quarantined])
    }


def test_a_whole_landing_is_said() -> None:
    assert kinds(Extent(0, 100, 100), [Extent(0, 60, 60), Extent(60, 100, 40)]) == {("whole", 0, 100)}


def test_every_hole_is_named_and_the_rest_is_behind() -> None:
    found = kinds(Extent(0, 100, 100), [Extent(10, 20, 10), Extent(30, 60, 30)])
    assert found == {("hole", 0, 10), ("hole", 20, 30), ("behind", 60, 100)}


def test_a_repeat_is_named() -> None:
    assert ("repeat", 5, 6) in kinds(Extent(0, 10, 10), [Extent(0, 5, 5), Extent(5, 6, 2), Extent(6, 10, 4)])


def test_what_the_journal_lost_or_the_quarantine_has_is_no_hole() -> None:
    found = kinds(Extent(0, 30, 30), [Extent(0, 10, 10), Extent(15, 20, 5), Extent(22, 30, 8)], [(10, 15)], [20, 21])
    assert found == {("quarantined", 20, 22), ("whole", 0, 30)}


def test_what_the_journal_lost_beyond_what_was_read_is_neither_behind_nor_a_hole() -> None:
    held, missing = Extent(0, 30, 20), [(10, 20)]
    assert kinds(held, [], missing) == {("behind", 0, 10), ("behind", 20, 30)}
    assert kinds(held, [Extent(0, 5, 5)], missing) == {("whole", 0, 5), ("behind", 5, 10), ("behind", 20, 30)}
    assert kinds(held, [Extent(0, 10, 10)], missing) == {("whole", 0, 20), ("behind", 20, 30)}
    assert kinds(held, [Extent(20, 30, 10)], missing) == {("hole", 0, 10)}


def test_what_landed_before_retention_let_it_go_is_no_matter() -> None:
    assert kinds(Extent(50, 100, 50), [Extent(0, 60, 60), Extent(60, 90, 30)]) == {
        ("whole", 50, 90),
        ("behind", 90, 100),
    }


def test_what_landed_in_a_file_that_is_gone_is_missing() -> None:
    gone = {"min.journal_offset": 60, "max.journal_offset": 79, "min.run": "a", "max.run": "c"}
    assert [reached_by([gone], run) for run in ("a", "b", "d")] == [80, 80, 0]
    found = compare("messages", "a", Extent(0, 90, 90), [], [Extent(0, 50, 50)], [], 80)
    assert [(each.kind, each.first, each.next) for each in found] == [("behind", 80, 90), ("hole", 50, 80)]
    assert not [
        each for each in compare("m", "a", Extent(0, 90, 90), [], [Extent(0, 90, 90)], [], 80) if each.kind == "hole"
    ]


@given(st.sets(st.integers(0, 60)), st.integers(0, 20), st.integers(20, 60))
def test_holes_are_exactly_the_offsets_that_did_not_land(landed: set[int], first: int, next: int) -> None:
    extents = [Extent(start, end, end - start) for start, end in ranges_of(landed)]
    found = compare("messages", "a", Extent(first, next, next - first), [], extents, [])
    missing = {offset for each in found if each.kind in ("hole", "behind") for offset in range(each.first, each.next)}
    last = max(landed, default=-1)
    assert {offset for offset in missing if offset < next} == set(range(first, next)) - landed
    assert all(each.first > last for each in found if each.kind == "behind")


def test_files_of_one_run_are_extents_and_those_of_several_are_not_plain() -> None:
    file = {"min.journal_offset": 5, "max.journal_offset": 9, "num_records": 5, "min.run": "a", "max.run": "a"}
    assert extents_of([file]) == {"a": [Extent(5, 10, 5)]}
    assert extents_of([file | {"max.run": "b"}]) == {"a": [Extent(0, 0, -1)], "b": [Extent(0, 0, -1)]}
    between = extents_of([file | {"max.run": "c"}], ["b", "d"])
    assert between == {run: [Extent(0, 0, -1)] for run in "abc"}, (
        "a compacted file holds the runs between its bounds, too"
    )


def test_erased_rows_are_told_once_and_what_is_there_again_is_not_among_them() -> None:
    landed = [Extent(0, 10, 10), Extent(12, 20, 8), Extent(25, 30, 5)]
    found = compare("messages", "a", Extent(5, 40, 35), [], landed, [], 0, [(0, 2), (10, 11), (20, 26), (30, 32)])
    assert [(each.kind, each.first, each.next, each.rows) for each in found] == [
        ("erased", 10, 32, 1 + 5 + 2),
        ("behind", 32, 40, 0),
        ("hole", 11, 12, 0),
    ]


@given(st.sets(st.integers(0, 60)), st.sets(st.integers(0, 60)))
def test_ranges_without_others_are_the_offsets_without_the_others(kept: set[int], others: set[int]) -> None:
    left = without(ranges_of(kept), [*ranges_of(others), *ranges_of(others)])
    assert left == ranges_of(kept - others) and count_offsets(left) == len(kept - others)


@given(st.sets(st.integers(0, 60)), st.integers(0, 60), st.integers(0, 60))
def test_ranges_between_two_offsets_are_the_offsets_between_them(kept: set[int], low: int, high: int) -> None:
    assert clipped(ranges_of(kept), low, high) == ranges_of(kept & set(range(low, high)))


@given(st.sets(st.integers(0, 60)), st.integers(1, 9))
def test_widened_ranges_are_no_more_than_asked_for_and_leave_out_the_widest_between(
    places: set[int], most: int
) -> None:
    ranges = [(place * 2, place * 2 + 1) for place in sorted(places)]
    found = widened(ranges, most)
    assert len(found) == min(most, len(ranges)) and {place for pair in ranges for place in pair} >= {*sum(found, ())}
    assert all(any(low <= first and next <= high for low, high in found) for first, next in ranges)
    between = sorted(after[0] - before[1] for before, after in pairwise(ranges))
    left = sorted(after[0] - before[1] for before, after in pairwise(found))
    assert left == between[len(between) - len(left) :]


def test_extents_that_the_journal_lost_are_named_once() -> None:
    landed, quarantined = [Extent(0, 10, 10), Extent(25, 30, 5)], [Lost(10, 15, 64), Lost(15, 16), Lost(20, 22)]
    found = find_lost(
        "messages", "a", Extent(2, 30, 28), [Lost(0, 12), Lost(14, 18), Lost(24, 26)], landed, quarantined
    )
    assert [(each.kind, each.first, each.next, each.bytes) for each in found] == [
        *[("lost", 10, 15, 64), ("lost", 20, 22, None)],
        *[("lost", 16, 18, None), ("lost", 24, 25, None)],
    ]
    assert not find_lost("messages", "a", Extent(0, 30, 30), [Lost(2, 6)], [Extent(0, 3, 3)], [], [(3, 6)]), "erased"
