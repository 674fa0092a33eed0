"""Where messages stood that no table has: by the offsets that are left out, and the arrivals on both sides."""

from __future__ import annotations

from typing import Any

from godwit_pipelines.transforms.lost import Place, list_holed, place_hole


def test_a_node_is_holed_that_has_fewer_messages_than_offsets_and_a_topic_never() -> None:
    def end(node: str, first: int, last: int, published: int) -> dict[str, Any]:
        return {"node": node, "first_journal_offset": first, "last_journal_offset": last, "published": published}

    ends = [end("n", 5, 9, 5), end("n", 10, 19, 10), end("m", 0, 4, 5), end("m", 6, 9, 4), end("topic/0", 0, 99, 3)]
    assert list_holed(ends, [{"node": "n"}, {"node": "m"}]) == ["m"]


def test_what_was_erased_of_a_hole_is_placed_already() -> None:
    hole = Place(9, "a", 109), Place(20, "a", 120)
    assert [*place_hole(*hole, [(10, 20)], [])] == [("a", 110, 10)]
    assert [*place_hole(*hole, [(12, 15), (16, 20)], [])] == [("a", 112, 3), ("a", 116, 4)]
    assert [*place_hole(*hole, [], [])] == []


def test_where_standard_messages_took_numbers_too_any_of_the_places_may_be_of_what_is_lost() -> None:
    assert [*place_hole(Place(9, "a", 109), Place(11, "a", 150), [(10, 11)], [])] == [("a", 110, 40)]
    began = [
        {"run": "a", "follows_run": None, "follows_arrival": None},
        {"run": "b", "follows_run": "a", "follows_arrival": 200},
    ]
    found = [*place_hole(Place(9, "a", 20), Place(110, "b", 222), [(10, 110)], began)]
    assert found == [("a", 21, 180), ("b", 201, 21)]


def test_a_hole_over_several_runs_is_in_each_of_them_as_far_as_it_can_be() -> None:
    began = [
        {"run": "a", "follows_run": None, "follows_arrival": None},
        {"run": "b", "follows_run": "a", "follows_arrival": 12},
        {"run": "c", "follows_run": None, "follows_arrival": None},
        {"run": "d", "follows_run": "c", "follows_arrival": 4},
        {"run": "e", "follows_run": "d", "follows_arrival": 9},
    ]
    # a had 2 more, b 6 at least if it had all of them, c 4, d the 2 before its first that is there
    assert [*place_hole(Place(9, "a", 10), Place(16, "d", 7), [(10, 16)], began)] == [
        ("a", 11, 2),
        ("b", 13, 6),
        ("c", 1, 4),
        ("d", 5, 2),
    ]
    # of runs that nothing is known of: so many behind the one, and before the other
    assert [*place_hole(Place(9, "x", 10), Place(12, "y", 3), [(10, 12)], began)] == [("x", 11, 2), ("y", 1, 2)]
