"""Where a subscription stands: tables for the rules of the contract, and a model in which connections break anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.client.stand import Stand
from godwit.client.standing import Standing, Verdict
from godwit.model import Gap, GapReason, Message, Position

SUBJECT = "/a/b"


def message(text: str, *, subject: str = SUBJECT, after: str | None = None, snapshot: bool = False) -> Message:
    return Message(
        subject,
        b"1",
        position=Position.parse(text),
        after=None if after is None else Position.parse(after),
        is_snapshot=snapshot,
    )


def gap(at: str, missed: int | None = None, subject: str = SUBJECT) -> Gap:
    return Gap(subject, Position.parse(at), reason=GapReason.EXPIRED, missed=missed)


def standing(at: str | None = None, *, pattern: bool = False, subjects_max: int = 10) -> Standing:
    stand = None if at is None else Stand({SUBJECT: Position.parse(at)})
    return Standing("/a/**" if pattern else SUBJECT, pattern, subjects_max, stand)


@pytest.mark.parametrize(
    ("at", "given", "verdict", "then"),
    [
        (None, message("7.5"), Verdict.NEW, "7.5"),
        ("7.4", message("7.5"), Verdict.NEW, "7.5"),
        ("7.5", message("7.5"), Verdict.DUPLICATE, "7.5"),
        ("7.5", message("7.2"), Verdict.DUPLICATE, "7.5"),
        ("7.4", message("7.6"), Verdict.MISSING, "7.6"),
        ("7.4", message("7.9", after="7.4"), Verdict.NEW, "7.9"),
        ("7.4", message("7.9", after="7.2"), Verdict.NEW, "7.9"),
        ("7.4", message("7.9", after="7.5"), Verdict.MISSING, "7.9"),
        ("7.4", message("3.1"), Verdict.NEW, "3.1"),
        ("7.4", message("7.8", snapshot=True), Verdict.NEW, "7.8"),
        ("7.8", message("7.8", snapshot=True), Verdict.DUPLICATE, "7.8"),
    ],
)
def test_position_decides(at: str | None, given: Message, verdict: Verdict, then: str) -> None:
    stand = standing(at)
    assert stand.judge(given) is verdict
    assert str(stand.position(SUBJECT)) == then


def test_standard_message_is_always_new_and_moves_nothing() -> None:
    stand = standing("7.4")
    assert stand.judge(Message(SUBJECT, b"1")) is Verdict.NEW
    assert str(stand.position(SUBJECT)) == "7.4"


def test_snapshot_after_a_gap_is_no_repeat() -> None:
    stand = standing("7.4")
    stand.place(gap("7.9"))
    assert stand.judge(message("7.9", snapshot=True)) is Verdict.NEW
    assert stand.judge(message("7.9", snapshot=True)) is Verdict.DUPLICATE
    assert stand.judge(message("7.10")) is Verdict.NEW


def test_gap_that_missed_nothing_brings_no_snapshot() -> None:
    stand = standing("7.4")
    stand.place(gap("8.0", missed=0))
    assert stand.judge(message("8.1")) is Verdict.NEW


def test_gap_to_another_reign_places_there_even_when_it_is_smaller() -> None:
    stand = standing("7.400")
    stand.place(gap("3.2"))
    assert stand.judge(message("3.2", snapshot=True)) is Verdict.NEW
    assert stand.judge(message("3.3")) is Verdict.NEW


def test_live_join_stands_where_the_server_says_before_any_message() -> None:
    stand = standing()
    stand.joined(Position(7, 58), 0)
    assert stand.stand == Stand({SUBJECT: Position(7, 58)})
    assert stand.judge(message("7.58")) is Verdict.DUPLICATE


def test_history_that_ends_before_the_head_leaves_the_stand_at_the_head() -> None:
    stand = standing()
    stand.joined(Position(7, 58), 2)
    for text in ("7.49", "7.50"):
        stand.judge(message(text))
    assert stand.position(SUBJECT) == Position(7, 58)


def test_gap_of_a_whole_pattern_forgets_every_stand() -> None:
    stand = standing("7.4", pattern=True)
    stand.mark("1.2.3", None)
    stand.place(Gap("/a/**", None, reason=GapReason.EPOCH, pattern="/a/**"))
    assert not stand.stand
    assert stand.judge(message("7.4", snapshot=True)) is Verdict.NEW


def test_pattern_forgets_the_longest_untouched_subject_and_then_resumes_by_its_mark_and_what_came_after() -> None:
    stand = standing(pattern=True, subjects_max=2)
    stand.judge(message("7.1", subject="/a/1"))
    stand.mark("1.1.1", "n")
    stand.judge(message("7.1", subject="/a/2"))
    assert stand.stand == Stand({"/a/1": Position(7, 1), "/a/2": Position(7, 1)}, "1.1.1", "n", 1)
    stand.judge(message("7.1", subject="/a/3"))
    assert stand.stand == Stand({"/a/2": Position(7, 1), "/a/3": Position(7, 1)}, "1.1.1", "n", 2, False)
    later = Standing("/a/**", True, 2, Stand.from_json(stand.stand.to_json()))
    assert later.stand == stand.stand
    assert later.stand.for_node("other") == Stand({}, "1.1.1")  # so that the node says what is missing
    assert stand.position("/a/1") is None


def test_what_came_after_the_last_mark_is_never_forgotten() -> None:
    stand = standing(pattern=True, subjects_max=2)
    stand.mark("1.1.1", "n")
    for number in range(9):
        stand.judge(message("7.1", subject=f"/a/{number}"))
    assert all(stand.judge(message("7.1", subject=f"/a/{number}")) is Verdict.DUPLICATE for number in range(9))


@pytest.mark.parametrize(
    ("after", "at", "missed", "refined"),
    [
        ("7.4", "7.9", 5, ("7.4", 5)),
        ("7.2", "7.9", 7, ("7.4", 5)),
        ("7.2", "7.9", None, ("7.4", None)),
        ("7.2", "7.4", 2, None),
        ("7.2", "7.3", 1, None),
        ("7.2", "8.1", None, ("7.4", None)),
        ("6.9", "7.9", None, ("6.9", None)),
    ],
)
def test_gap_counted_from_a_mark_is_cut_to_what_was_not_seen(
    after: str, at: str, missed: int | None, refined: tuple[str, int | None] | None
) -> None:
    told = Gap(SUBJECT, Position.parse(at), Position.parse(after), GapReason.OVERRUN, missed)
    found = standing("7.4", pattern=True).refine(told)
    assert (found and (str(found.after), found.missed)) == refined


@pytest.mark.parametrize(
    ("after", "at", "reason", "is_ignored"),
    [
        (None, "7.3", GapReason.EXPIRED, True),
        (None, "7.4", GapReason.OVERRUN, True),
        ("7.9", "7.2", GapReason.EPOCH, True),
        ("6.9", "7.4", GapReason.EPOCH, False),
        (None, "7.5", GapReason.EXPIRED, False),
        ("7.4", "7.2", GapReason.AHEAD, False),
        ("7.2", "7.2", GapReason.AHEAD, False),
        (None, "8.1", GapReason.EPOCH, False),
        (None, "6.9", GapReason.EPOCH, False),
    ],
)
def test_a_gap_at_or_before_the_position_is_ignored_unless_the_client_is_ahead(
    after: str | None, at: str, reason: GapReason, is_ignored: bool
) -> None:
    told = Gap(SUBJECT, Position.parse(at), None if after is None else Position.parse(after), reason, None)
    assert (standing("7.4").refine(told) is None) is is_ignored


def test_the_node_that_gave_the_mark_needs_only_the_positions_beyond_it_another_all_and_no_mark() -> None:
    places = {"/a/0": Position(7, 3), SUBJECT: Position(7, 1)}
    assert Stand(places, "1.1.1", "n").for_node("n") == Stand({}, "1.1.1")
    assert Stand(places, "1.1.1", "n").for_node("other") == Stand(places)
    assert Stand({}, "1.1.1", "n").for_node("other") == Stand({}, "1.1.1")
    assert Stand(places, "1.1.1", "n", 1).for_node("n") == Stand({SUBJECT: Position(7, 1)}, "1.1.1")


@pytest.mark.parametrize(("count", "length"), [(4_001, 0), (300, 900)])
def test_a_question_that_the_server_would_not_take_is_left_to_the_mark(count: int, length: int) -> None:
    places = {f"/{n}{'x' * length}": Position(7, 1) for n in range(count)}
    assert Stand(places, "1.1.1", "n").for_node("other") == Stand({}, "1.1.1")


def test_who_goes_on_from_a_stand_knows_what_is_beyond_its_mark() -> None:
    first = standing(pattern=True)
    first.judge(message("7.1", subject="/a/1"))
    first.mark("1.1.1", "n")
    first.judge(message("7.1", subject="/a/2"))
    second = Standing("/a/**", True, 10, Stand.from_json(first.stand.to_json()))
    second.judge(message("7.2", subject="/a/1"))
    assert second.stand.for_node("n") == Stand({"/a/2": Position(7, 1), "/a/1": Position(7, 2)}, "1.1.1")


def test_a_stand_without_a_mark_is_asked_as_it_is() -> None:
    assert Stand({SUBJECT: Position(7, 1)}).for_node(None) == Stand({SUBJECT: Position(7, 1)})


@given(st.lists(st.integers(min_value=0, max_value=40), max_size=30), st.integers(min_value=1, max_value=40))
def test_wherever_a_connection_breaks_everything_comes_once(cuts: list[int], total: int) -> None:
    """The server sends from where it is asked, or some messages earlier; each list entry breaks after so many messages."""
    stand, seen = standing("7.0"), []
    for cut in [*cuts, total]:
        asked = stand.stand.after[SUBJECT].sequence
        start = max(1, asked - cut % 3)
        for sequence in range(start, min(start + cut + 3, total + 1) if cut != total else total + 1):
            verdict = stand.judge(message(f"7.{sequence}"))
            assert verdict is not Verdict.MISSING
            if verdict is Verdict.NEW:
                seen.append(sequence)
    assert seen == list(range(1, total + 1))
