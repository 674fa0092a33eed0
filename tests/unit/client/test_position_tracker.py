"""The position of a subscription: tables for the rules of the protocol, and a model in which connections break anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.client.position_tracker import PositionTracker, Verdict
from godwit.client.resume_point import ResumePoint
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


def tracker(at: str | None = None, *, pattern: bool = False, subjects_max: int = 10) -> PositionTracker:
    resume_point = None if at is None else ResumePoint({SUBJECT: Position.parse(at)})
    return PositionTracker("/a/**" if pattern else SUBJECT, pattern, subjects_max, resume_point)


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
    resume_point = tracker(at)
    assert resume_point.judge(given) is verdict
    assert str(resume_point.position(SUBJECT)) == then


def test_standard_message_is_always_new_and_moves_nothing() -> None:
    resume_point = tracker("7.4")
    assert resume_point.judge(Message(SUBJECT, b"1")) is Verdict.NEW
    assert str(resume_point.position(SUBJECT)) == "7.4"


def test_snapshot_after_a_gap_is_no_repeat() -> None:
    resume_point = tracker("7.4")
    resume_point.place(gap("7.9"))
    assert resume_point.judge(message("7.9", snapshot=True)) is Verdict.NEW
    assert resume_point.judge(message("7.9", snapshot=True)) is Verdict.DUPLICATE
    assert resume_point.judge(message("7.10")) is Verdict.NEW


def test_gap_that_missed_nothing_brings_no_snapshot() -> None:
    resume_point = tracker("7.4")
    resume_point.place(gap("8.0", missed=0))
    assert resume_point.judge(message("8.1")) is Verdict.NEW


def test_gap_to_another_run_places_there_even_when_it_is_smaller() -> None:
    resume_point = tracker("7.400")
    resume_point.place(gap("3.2"))
    assert resume_point.judge(message("3.2", snapshot=True)) is Verdict.NEW
    assert resume_point.judge(message("3.3")) is Verdict.NEW


def test_live_join_stands_where_the_server_says_before_any_message() -> None:
    resume_point = tracker()
    resume_point.joined(Position(7, 58), 0)
    assert resume_point.resume_point == ResumePoint({SUBJECT: Position(7, 58)})
    assert resume_point.judge(message("7.58")) is Verdict.DUPLICATE


def test_history_that_ends_before_the_head_leaves_the_stand_at_the_head() -> None:
    resume_point = tracker()
    resume_point.joined(Position(7, 58), 2)
    for text in ("7.49", "7.50"):
        resume_point.judge(message(text))
    assert resume_point.position(SUBJECT) == Position(7, 58)


def test_gap_of_a_whole_pattern_forgets_every_stand() -> None:
    resume_point = tracker("7.4", pattern=True)
    resume_point.resume_token("1.2.3", None)
    resume_point.place(Gap("/a/**", None, reason=GapReason.EPOCH, pattern="/a/**"))
    assert not resume_point.resume_point
    assert resume_point.judge(message("7.4", snapshot=True)) is Verdict.NEW


def test_pattern_forgets_the_longest_untouched_subject_and_then_resumes_by_its_resume_token_and_what_came_after() -> (
    None
):
    resume_point = tracker(pattern=True, subjects_max=2)
    resume_point.judge(message("7.1", subject="/a/1"))
    resume_point.resume_token("1.1.1", "n")
    resume_point.judge(message("7.1", subject="/a/2"))
    assert resume_point.resume_point == ResumePoint({"/a/1": Position(7, 1), "/a/2": Position(7, 1)}, "1.1.1", "n", 1)
    resume_point.judge(message("7.1", subject="/a/3"))
    assert resume_point.resume_point == ResumePoint(
        {"/a/2": Position(7, 1), "/a/3": Position(7, 1)}, "1.1.1", "n", 2, False
    )
    later = PositionTracker("/a/**", True, 2, ResumePoint.from_json(resume_point.resume_point.to_json()))
    assert later.resume_point == resume_point.resume_point
    assert later.resume_point.for_node("other") == ResumePoint({}, "1.1.1")  # so that the node says what is missing
    assert resume_point.position("/a/1") is None


def test_what_came_after_the_last_resume_token_is_never_forgotten() -> None:
    resume_point = tracker(pattern=True, subjects_max=2)
    resume_point.resume_token("1.1.1", "n")
    for number in range(9):
        resume_point.judge(message("7.1", subject=f"/a/{number}"))
    assert all(resume_point.judge(message("7.1", subject=f"/a/{number}")) is Verdict.DUPLICATE for number in range(9))


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
def test_gap_counted_from_a_resume_token_is_cut_to_what_was_not_seen(
    after: str, at: str, missed: int | None, refined: tuple[str, int | None] | None
) -> None:
    pushed = Gap(SUBJECT, Position.parse(at), Position.parse(after), GapReason.OVERRUN, missed)
    found = tracker("7.4", pattern=True).refine(pushed)
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
    pushed = Gap(SUBJECT, Position.parse(at), None if after is None else Position.parse(after), reason, None)
    assert (tracker("7.4").refine(pushed) is None) is is_ignored


def test_the_node_that_gave_the_resume_token_needs_only_the_positions_beyond_it_another_all_and_no_resume_token() -> (
    None
):
    places = {"/a/0": Position(7, 3), SUBJECT: Position(7, 1)}
    assert ResumePoint(places, "1.1.1", "n").for_node("n") == ResumePoint({}, "1.1.1")
    assert ResumePoint(places, "1.1.1", "n").for_node("other") == ResumePoint(places)
    assert ResumePoint({}, "1.1.1", "n").for_node("other") == ResumePoint({}, "1.1.1")
    assert ResumePoint(places, "1.1.1", "n", 1).for_node("n") == ResumePoint({SUBJECT: Position(7, 1)}, "1.1.1")
    assert ResumePoint(places, "1.1.1").for_node("n") == ResumePoint(places, "1.1.1")  # `godwit tail --since --after`


@pytest.mark.parametrize(("count", "length"), [(4_001, 0), (300, 900)])
def test_a_question_that_the_server_would_not_take_is_left_to_the_resume_token(count: int, length: int) -> None:
    places = {f"/{n}{'x' * length}": Position(7, 1) for n in range(count)}
    assert ResumePoint(places, "1.1.1", "n").for_node("other") == ResumePoint({}, "1.1.1")


def test_who_goes_on_from_a_stand_knows_what_is_beyond_its_resume_token() -> None:
    first = tracker(pattern=True)
    first.judge(message("7.1", subject="/a/1"))
    first.resume_token("1.1.1", "n")
    first.judge(message("7.1", subject="/a/2"))
    second = PositionTracker("/a/**", True, 10, ResumePoint.from_json(first.resume_point.to_json()))
    second.judge(message("7.2", subject="/a/1"))
    assert second.resume_point.for_node("n") == ResumePoint({"/a/2": Position(7, 1), "/a/1": Position(7, 2)}, "1.1.1")


def test_a_stand_without_a_resume_token_is_asked_as_it_is() -> None:
    assert ResumePoint({SUBJECT: Position(7, 1)}).for_node(None) == ResumePoint({SUBJECT: Position(7, 1)})


@given(st.lists(st.integers(min_value=0, max_value=40), max_size=30), st.integers(min_value=1, max_value=40))
def test_wherever_a_connection_breaks_everything_comes_once(cuts: list[int], total: int) -> None:
    """The server sends from where it is asked, or some messages earlier; each list entry breaks after so many messages."""
    resume_point, seen = tracker("7.0"), []
    for cut in [*cuts, total]:
        asked = resume_point.resume_point.after[SUBJECT].sequence
        start = max(1, asked - cut % 3)
        for sequence in range(start, min(start + cut + 3, total + 1) if cut != total else total + 1):
            verdict = resume_point.judge(message(f"7.{sequence}"))
            assert verdict is not Verdict.MISSING
            if verdict is Verdict.NEW:
                seen.append(sequence)
    assert seen == list(range(1, total + 1))
