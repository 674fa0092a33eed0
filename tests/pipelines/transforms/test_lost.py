"""The positions of messages that no table has: from the missing offsets, and the arrivals on both sides."""

from __future__ import annotations

import tracemalloc
from typing import Any

from godwit_pipelines.transforms.lost import _FAR, Place, find_heads, list_first, list_holed_nodes, place_hole


def end(node: str, run: str, first: int, last: int, published: int) -> dict[str, Any]:
    place = {"first_journal_offset": first, "last_journal_offset": last}
    return {"node": node, "run": run, **place, "published": published}


def began(run: str, offset: int, follows: str | None = None, **more: Any) -> dict[str, Any]:
    fields = {"kind": "began", "journal_offset": offset, "follows_run": follows, "follows_arrival": None}
    return {"node": "n", "run": run, **fields, **more}


def test_a_node_is_holed_that_has_fewer_messages_than_offsets_and_a_topic_never() -> None:
    ends = [end("n", "a", 5, 9, 5), end("n", "b", 10, 19, 10), end("m", "a", 0, 4, 5), end("m", "b", 6, 9, 4)]
    ends += [end("topic/0", "t", 0, 99, 3)]
    said = [began("a", 0), began("b", 1, "a"), began("a", 0, node="m"), began("b", 1, "a", node="m")]
    assert list_holed_nodes(ends, said) == ["m"]


def test_rows_of_a_journal_that_began_anew_hide_none_that_are_missing_of_another() -> None:
    """200 offsets of one run and 600 of another are fewer than 600, whatever is missing."""
    anew = [began("a", 0), began("b", 0)]
    assert list_holed_nodes([end("n", "a", 0, 199, 200), end("n", "b", 0, 599, 600)], anew) == []
    assert list_holed_nodes([end("n", "a", 0, 199, 200), end("n", "b", 0, 599, 570)], anew) == ["n"]
    copied = [began("a", 0), began("b", 1, "a"), began("c", 1, "a")]
    assert (
        list_holed_nodes([end("n", "a", 0, 99, 100), end("n", "b", 100, 149, 50), end("n", "c", 60, 90, 31)], copied)
        == []
    )
    assert list_holed_nodes(
        [end("n", "a", 0, 99, 100), end("n", "b", 100, 149, 50), end("n", "c", 102, 190, 89)], copied
    ) == ["n"]


def test_what_was_erased_of_a_hole_is_placed_already() -> None:
    hole = Place(9, "a", 109), Place(20, "a", 120)
    assert [*place_hole(*hole, [(10, 20)], [], ["a"])] == [("a", 110, 10)]
    assert [*place_hole(*hole, [(12, 15), (16, 20)], [], ["a"])] == [("a", 112, 3), ("a", 116, 4)]
    assert [*place_hole(*hole, [], [], ["a"])] == []


def test_where_standard_messages_took_numbers_too_any_of_the_places_may_be_of_what_is_lost() -> None:
    assert [*place_hole(Place(9, "a", 109), Place(11, "a", 150), [(10, 11)], [], ["a"])] == [("a", 110, 40)]
    began = [
        {"run": "a", "follows_run": None, "follows_arrival": None},
        {"run": "b", "follows_run": "a", "follows_arrival": 200},
    ]
    found = [*place_hole(Place(9, "a", 20), Place(110, "b", 222), [(10, 110)], began, ["a", "b"])]
    assert found == [("a", 21, 180), ("b", 201, 21)]


def first(run: str, offset: int, arrival: int) -> dict[str, Any]:
    return {"node": "n", "run": run, "first_journal_offset": offset, "first_arrival": arrival}


def test_damaged_messages_before_the_first_that_is_there_are_missing_and_what_retention_let_go_of_is_not() -> None:
    ends, said = [first("a", 19, 30)], [began("a", 0)]
    head = [("n", Place(-1, "a", 0), Place(19, "a", 30))]
    assert [*find_heads(ends, said, {}, {("n", "a"): [(0, 19)]})] == head
    assert [*find_heads(ends, said, {("n", "a"): [(0, 5)]}, {("n", ""): [(5, 19)]})] == head
    for held in ([(1, 19)], [(0, 18)], []):
        assert [*find_heads(ends, said, {}, {("n", "a"): held, ("n", "b"): [(0, 19)], ("m", "a"): [(0, 19)]})] == []
    assert [*find_heads(ends, [], {}, {("n", "a"): [(0, 19)]})] == [], "nothing says that its journal began with 0"
    assert [*find_heads([first("a", 0, 1)], said, {}, {("n", "a"): [(0, 19)]})] == []
    assert [*place_hole(head[0][1], head[0][2], [(0, 19)], said, ["a"])] == [("a", 1, 29)]


def test_damaged_messages_of_whole_runs_are_missing_before_the_first_of_the_run_that_follows() -> None:
    said = [began("a", 0), {**began("b", 1, "a"), "follows_arrival": 12}, began("c", 0)]
    damaged = {("n", "a"): [(0, 10)], ("n", "b"): [(10, 12)], ("n", "c"): [(0, 3)]}
    ends = [first("b", 12, 15), first("c", 3, 4)]
    found = [("n", Place(-1, "a", 0), Place(12, "b", 15)), ("n", Place(-1, "c", 0), Place(3, "c", 4))]
    assert [*find_heads(ends, said, {}, damaged)] == found
    assert [*place_hole(*found[0][1:], [(0, 12)], said, ["a", "b"])] == [("a", 1, 12), ("b", 13, 2)]


def test_a_hole_over_several_runs_is_in_each_of_them_as_far_as_it_can_be() -> None:
    began = [
        {"run": "a", "follows_run": None, "follows_arrival": None},
        {"run": "b", "follows_run": "a", "follows_arrival": 12},
        {"run": "c", "follows_run": "b", "follows_arrival": 18},
        {"run": "d", "follows_run": "c", "follows_arrival": 22},
        {"run": "e", "follows_run": "d", "follows_arrival": 29},
    ]
    # a had 2 more, b 6, c 4, d the 2 before its first that is there
    assert [*place_hole(Place(9, "a", 10), Place(16, "d", 25), [(10, 16)], began, ["a", "b", "c", "d"])] == [
        ("a", 11, 2),
        ("b", 13, 6),
        ("c", 19, 4),
        ("d", 23, 2),
    ]
    # of runs that nothing is known of: so many behind the one, and before the other
    assert [*place_hole(Place(9, "x", 10), Place(12, "y", 3), [(10, 12)], began, ["x", "y"])] == [
        ("x", 11, 2),
        ("y", 1, 2),
    ]


def test_a_run_that_two_follow_ended_where_the_one_of_this_journal_says() -> None:
    """After a copy, `f` follows the same run earlier; which of the two is read last does not matter."""
    root = {"run": "a", "follows_run": None, "follows_arrival": None}
    forks = [
        {"run": "b", "follows_run": "a", "follows_arrival": 12},
        {"run": "f", "follows_run": "a", "follows_arrival": 30},
    ]
    for began in ([root, *forks], [root, *reversed(forks)]):
        assert [*place_hole(Place(9, "a", 10), Place(14, "b", 15), [(10, 14)], began, ["a", "b"])] == [
            ("a", 11, 2),
            ("b", 13, 2),
        ]


def test_a_line_of_which_every_message_is_damaged_ends_where_that_ends() -> None:
    said = [began("a", 0), {**began("b", 1, "a"), "follows_arrival": 12}, began("c", 0)]
    damaged = {("n", "a"): [(0, 10)], ("n", "b"): [(10, 12)]}
    found = [*find_heads([first("c", 0, 1)], said, {}, damaged)]
    assert found == [("n", Place(-1, "a", 0), Place(12, "b", _FAR))]
    placed = [*place_hole(*found[0][1:], [(0, 12)], said, ["a", "b"])]
    assert placed == [("a", 1, 12), ("b", 13, _FAR - 13)]
    assert [*find_heads([], said, {}, {("n", "b"): [(10, 12)]})] == [], "what stood before may have been let go of"


def test_the_first_message_of_a_long_line_needs_no_more_memory_than_the_line() -> None:
    runs = [f"{at:06}" for at in range(4000)]
    said = [began(run, at, runs[at - 1] if at else None) for at, run in enumerate(runs)]
    place = Place(7, runs[-1], 1)
    tracemalloc.start()
    found = [*list_first({"n": {runs[-1]: place}}, said)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [("n", (runs[0], place, runs))]
    assert peak < 10_000_000, "a list for each run of the runs before it takes 64 MB"
