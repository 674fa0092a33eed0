"""The checker against a brute-force judge: it reports a violation exactly when the history has one, for random histories and faults."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.model import Gap, GapReason, Message, Outcome, Position
from godwit.verify.judge.checker import Checker
from godwit.verify.judge.content import Style
from godwit.verify.judge.finding import Guarantee
from godwit.verify.judge.merging import Merging
from tests.unit.verify.judge.model import (
    EPOCH,
    SUBJECT,
    Life,
    Push,
    checker_says,
    conflated,
    content,
    context,
    gap,
    is_right,
    message,
    publish,
    snapshot,
)

LOG_MAX = 4
steps = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 7)), min_size=1, max_size=12)


def a_life(plan: list[tuple[int, int]]) -> Life:
    life = Life(0, LOG_MAX)
    for read, published in plan:
        life.live(read, published)
    life.catch_up()
    return life


@settings(max_examples=300, deadline=None)
@given(steps)
def test_an_honest_life_is_never_found_wrong(plan: list[tuple[int, int]]) -> None:
    life = a_life(plan)
    assert is_right(life.seen, life.head, LOG_MAX)
    assert checker_says(life.seen, life.head, LOG_MAX).kept == []


def lie(seen: list[Push], how: str, state: int) -> list[Push]:
    """The same life with one lie."""
    state %= len(seen)
    one, rest = seen[state], [*seen[:state], *seen[state + 1 :]]
    match how:
        case "lose":
            return rest
        case "repeat":
            return [*seen[: state + 1], *seen[state:]]
        case "reorder":
            return [*rest[: state + 1], one, *rest[state + 1 :]]
        case "alter":
            if isinstance(one, Message):
                return [*seen[:state], replace(one, content=one.content.replace(b'p":', b'q":')), *seen[state + 1 :]]
        case "miscount":
            if isinstance(one, Gap):
                return [*seen[:state], replace(one, missed=(one.missed or 0) + 1), *seen[state + 1 :]]
        case "cut short":
            return seen[:state]
        case "invent a gap":
            begin = seen[state - 1].position.sequence if state and seen[state - 1].position else 0
            at = one.position.sequence if one.position else 0
            if isinstance(one, Message) and at > begin:
                return [*seen[:state], gap(begin, at), snapshot(at), *seen[state + 1 :]]
    return seen


LIES = ("lose", "repeat", "reorder", "alter", "miscount", "cut short", "invent a gap")


@settings(max_examples=400, deadline=None)
@given(steps, st.sampled_from(LIES), st.integers(0, 1_000))
def test_the_checker_and_brute_force_agree_on_every_lie(plan: list[tuple[int, int]], how: str, state: int) -> None:
    life = a_life(plan)
    if not life.seen:
        return
    seen = lie(life.seen, how, state)
    findings = checker_says(seen, life.head, LOG_MAX)
    assert bool(findings.total) == (not is_right(seen, life.head, LOG_MAX)), (seen, findings.kept)


def test_each_lie_breaks_the_guarantee_that_it_is_about() -> None:
    seen: list[Push] = [message(number) for number in range(1, 6)]
    wanted = {
        "lose": Guarantee.NO_LOSS,
        "repeat": Guarantee.NO_REPEAT,
        "reorder": Guarantee.ORDER,
        "alter": Guarantee.CONTENT,
        "invent a gap": Guarantee.GAPS,
    }
    for how, guarantee in wanted.items():
        assert guarantee in checker_says(lie(seen, how, 2), 5, LOG_MAX).counts, how


def test_the_shortest_history_says_where_it_stood_what_came_and_what_the_expected_holds() -> None:
    seen: list[Push] = [message(number) for number in (1, 2, 3, 5, 6)]
    finding = checker_says(seen, 6, LOG_MAX).shortest()
    assert finding is not None and finding.guarantee is Guarantee.NO_LOSS
    assert finding.sentence == "received 7.5 after 7.3: 7.4 is missing, and no gap was reported"
    assert [line.split("  ")[-1] for line in finding.history[:2]] == ["message 7.3", "message 7.5"]
    assert any("7.4: publish 1/4" in line and "acknowledged" in line for line in finding.history)


def following(selector: str = SUBJECT, is_late: bool = False, **more: int) -> Checker:
    """One who joined before ten messages were published; or after, if late."""
    checker = Checker("w", selector, context(LOG_MAX), **more)
    if is_late:
        publish(checker.context.expected, 10)
    checker.asked(0)
    if not is_late:
        publish(checker.context.expected, 10)
    return checker


def found(checker: Checker) -> set[Guarantee]:
    return set(checker.context.findings.counts)


def test_what_comes_again_after_a_resume_from_a_resume_token_is_no_repeat_but_twice_is() -> None:
    checker = following("/*")
    for number in (1, 2):
        checker.message(0, message(number))
    checker.marked(0, "m")
    for number in (3, 4):
        checker.message(0, message(number))
    checker.lost(1)
    checker.asked(1, since="m")
    for number in (3, 4, 5):
        checker.message(1, message(number))
    assert not found(checker) and checker.counts.again == 2
    checker.message(2, message(4))
    assert found(checker) == {Guarantee.NO_REPEAT}


def test_a_client_must_hide_what_comes_again() -> None:
    checker = following(is_client=True)
    checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
    for number in (1, 2, 2):
        checker.message(0, message(number))
    assert found(checker) == {Guarantee.NO_REPEAT}


def test_another_run_without_a_gap_is_found_and_with_one_is_not() -> None:
    for is_reported in (False, True):
        checker = following()
        checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
        checker.message(0, message(1))
        checker.context.expected.restart()
        checker.context.restarts += 1
        publish(checker.context.expected, 1, epoch=8)
        if is_reported:
            checker.gap(1, Gap(SUBJECT, Position(8, 0), Position(EPOCH, 1), GapReason.EPOCH, None))
        checker.message(1, Message(SUBJECT, content(11), position=Position(8, 1)))
        assert found(checker) == (set() if is_reported else {Guarantee.RUN})


def test_a_gap_may_begin_where_the_run_before_ended_and_nowhere_before_that() -> None:
    for after, wanted in ((Position(EPOCH, 1), set()), (Position(EPOCH, 0), {Guarantee.GAPS})):
        checker = following()
        checker.context.rules = replace(checker.context.rules, keeps_journal=True)
        checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
        checker.message(0, message(1))
        checker.context.expected.restart()
        publish(checker.context.expected, 9, epoch=8)
        checker.gap(1, Gap(SUBJECT, Position(8, 0), Position(EPOCH, 1), GapReason.EPOCH, 0))
        checker.gap(2, Gap(SUBJECT, Position(8, 8), after, GapReason.OVERRUN, 8))
        assert found(checker) == wanted


def test_a_gap_for_a_restart_that_nobody_made_is_found() -> None:
    checker = following()
    checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
    checker.message(0, message(1))
    checker.gap(1, Gap(SUBJECT, Position(8, 0), Position(EPOCH, 1), GapReason.EPOCH, None))
    assert found(checker) == {Guarantee.GAPS}


def cut_after_a_gap(checker: Checker, resume_tokens: bool, cut_ms: int) -> set[Guarantee]:
    """The node restarts once; a pattern is notified, disconnected, and notified again."""
    seen = Gap("/*", None, None, GapReason.EPOCH, None)
    checker.context.expected.restart()
    checker.context.restarts += 1
    checker.gap(0, seen)
    if resume_tokens:
        checker.marked(1, "m")
    checker.lost(cut_ms)
    checker.gap(cut_ms + 1, seen)
    return found(checker)


def test_a_join_that_was_cut_may_tell_its_gap_again_and_one_that_was_complete_may_not() -> None:
    assert not cut_after_a_gap(following("/*"), resume_tokens=False, cut_ms=60_000)
    assert cut_after_a_gap(following("/*"), resume_tokens=True, cut_ms=5) == {Guarantee.GAPS}
    assert not cut_after_a_gap(following("/*", is_client=True), resume_tokens=False, cut_ms=5)
    assert cut_after_a_gap(following("/*", is_client=True), resume_tokens=False, cut_ms=60_000) == {Guarantee.GAPS}


def test_a_gap_that_was_read_late_speaks_of_the_restart_before() -> None:
    """The node restarts twice while the subscriber does not read: it is notified of both, and of a third one that did not happen."""
    checker, seen = following("/*", is_client=True), Gap("/*", None, None, GapReason.EPOCH, None)
    for _ in range(2):
        checker.context.expected.restart()
        checker.context.restarts += 1
    publish(checker.context.expected, 1, epoch=9)
    checker.gap(0, seen)
    checker.message(0, snapshot(10))  # of a run that is over
    checker.gap(20_000, seen)
    checker.message(20_000, Message(SUBJECT, content(11), position=Position(9, 1)))
    assert not found(checker)
    checker.gap(40_000, seen)
    assert found(checker) == {Guarantee.GAPS}


def test_who_joins_behind_what_was_acknowledged_is_found() -> None:
    checker = following(is_late=True)
    checker.joined(0, Position(EPOCH, 9), Outcome.SNAPSHOT, 1)
    assert found(checker) == {Guarantee.FRESH}


def test_a_pattern_that_is_not_told_of_a_subject_is_found_when_its_join_is_complete() -> None:
    checker = following("/*", is_late=True)
    checker.marked(0, "m")
    assert found(checker) == {Guarantee.FRESH}


def test_a_recovery_that_guarantees_the_wrong_number_is_found() -> None:
    for count, wanted in ((7, set()), (6, {Guarantee.GAPS})):
        checker = following()
        checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
        for number in (1, 2, 3):
            checker.message(0, message(number))
        checker.lost(1)
        checker.asked(1)
        checker.joined(1, Position(EPOCH, 10), Outcome.RECOVERED, count)
        assert found(checker) == wanted


def test_a_snapshot_that_nothing_announced_is_found() -> None:
    checker = following()
    checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
    checker.message(0, message(1))
    checker.message(0, snapshot(10))
    assert Guarantee.GAPS in found(checker)


def test_a_gap_whose_snapshot_does_not_follow_is_found() -> None:
    checker = following()
    checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
    checker.gap(0, gap(0, 9))
    checker.message(0, message(10))
    assert found(checker) == {Guarantee.GAPS}


@pytest.mark.parametrize(("seen", "is_found"), [(conflated(0, 2), False), (conflated(0, 2, count=3), True)])
def test_conflated_messages_are_counted(seen: Message, is_found: bool) -> None:
    checker = following(conflate_ms=100)
    checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
    checker.message(0, seen)
    assert found(checker) == ({Guarantee.MERGE} if is_found else set())


def test_a_conflated_message_without_the_latest_value_is_found() -> None:
    checker = following(conflate_ms=100)
    checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
    checker.message(0, replace(conflated(0, 2), content=conflated(0, 1).content))
    assert found(checker) == {Guarantee.MERGE}


def test_a_message_that_a_window_closes_over_may_come_again_after_a_resume_only() -> None:
    checker = following(conflate_ms=100)
    checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
    checker.message(0, message(1))
    checker.lost(1)
    checker.asked(1)
    checker.joined(1, Position(EPOCH, 1), Outcome.RECOVERED, 0)
    checker.message(1, message(1))
    checker.message(1, conflated(0, 3))
    assert not found(checker)
    checker.message(60_000, conflated(1, 3))
    assert found(checker) == {Guarantee.NO_REPEAT}


def test_one_publishers_messages_keep_their_order_across_the_subjects_of_a_pattern() -> None:
    trial = context(styles={"/a": Style.OBJECT, "/b": Style.OBJECT})
    publish(trial.expected, 1, "/a")
    publish(trial.expected, 1, "/b")
    checker = Checker("w", "/*", trial)
    checker.asked(0)
    checker.marked(0, "m")
    trial.findings.counts.clear()
    checker.message(1, replace(message(2), subject="/b", position=Position(EPOCH, 1)))
    checker.message(2, replace(message(1), subject="/a", position=Position(EPOCH, 1)))
    assert found(checker) == {Guarantee.ORDER}


def over_a_restart(reached: int, first: Message, seen: Gap | None = None, keeps_journal: bool = True) -> set[Guarantee]:
    """One who stood there when the node was killed, and the first that it hears of the new run."""
    checker = following()
    checker.context.rules = replace(checker.context.rules, keeps_journal=keeps_journal)
    checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
    for number in range(1, reached + 1):
        checker.message(0, message(number))
    checker.lost(1)
    checker.context.expected.restart()
    checker.context.restarts += 1
    publish(checker.context.expected, 1, epoch=8)
    checker.asked(1)
    checker.joined(1, Position(8, 1), Outcome.RESYNC if seen else Outcome.RECOVERED, 1)
    if seen is not None:
        checker.gap(1, seen)
    checker.message(1, first)
    return found(checker)


def first_of_the_next_run(after: Position | None) -> Message:
    return Message(SUBJECT, content(11), position=Position(8, 1), after=after)


def test_a_run_that_goes_on_from_a_journal_is_told_by_the_position_that_its_first_message_follows() -> None:
    assert not over_a_restart(3, first_of_the_next_run(Position(EPOCH, 3)))
    assert not over_a_restart(3, first_of_the_next_run(Position(EPOCH, 2)))  # it saw more than the disk did
    assert over_a_restart(3, first_of_the_next_run(Position(EPOCH, 4))) == {Guarantee.RUN}
    assert over_a_restart(3, first_of_the_next_run(None)) == {Guarantee.RUN}
    assert not over_a_restart(0, first_of_the_next_run(None))
    merged = replace(first_of_the_next_run(Position(8, 0)), position=Position(8, 2), conflated=2)
    assert Guarantee.RUN not in over_a_restart(0, merged)
    assert Guarantee.RUN in over_a_restart(0, replace(merged, after=Position(8, 1)))
    assert Guarantee.RUN in over_a_restart(0, first_of_the_next_run(None), keeps_journal=False)


def test_the_snapshot_that_a_journal_brought_back_holds_the_fields_of_the_run_before() -> None:
    seen = Gap(SUBJECT, Position(8, 0), Position(EPOCH, 3), GapReason.OVERRUN, 7)
    for last, wanted in ((10, set()), (9, {Guarantee.MERGE})):
        checker = following()
        checker.context.rules = replace(checker.context.rules, keeps_journal=True)
        checker.context.merging = Merging(checker.context.expected, keeps_journal=True)
        checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
        for number in (1, 2, 3):
            checker.message(0, message(number))
        checker.context.expected.restart()
        checker.context.restarts += 1
        checker.context.expected.follow(SUBJECT, 8, Position(EPOCH, 10))
        checker.gap(1, seen)
        checker.message(1, replace(snapshot(last), position=Position(8, 0)))
        assert found(checker) == wanted


def test_what_followed_a_resume_token_of_the_run_before_comes_again_over_its_end() -> None:
    checker = following("/*")
    checker.context.rules = replace(checker.context.rules, keeps_journal=True)
    checker.message(0, message(1))
    checker.marked(0, "m")
    checker.message(0, message(2))
    checker.context.expected.restart()
    checker.context.restarts += 1
    publish(checker.context.expected, 1, epoch=8)
    first = first_of_the_next_run(Position(EPOCH, 2))
    checker.message(1, first)
    checker.lost(2)
    checker.asked(2, since="m")
    checker.message(2, message(2))
    checker.message(2, first)
    assert not found(checker)
    checker.message(2, message(2))
    assert found(checker) == {Guarantee.RUN}


def test_a_subject_that_is_younger_than_the_resume_token_comes_again_from_its_first_run() -> None:
    checker = following("/*")
    checker.context.rules = replace(checker.context.rules, keeps_journal=True)
    checker.marked(0, "m")
    checker.context.findings.counts.clear()  # that nothing had come is not what this is about
    checker.message(0, message(1))
    checker.context.expected.restart()
    checker.context.restarts += 1
    publish(checker.context.expected, 1, epoch=8)
    first = first_of_the_next_run(Position(EPOCH, 1))
    checker.message(1, first)
    for reply in (message(1), message(2)):
        checker.lost(2)
        checker.asked(2, since="m")
        checker.message(2, reply)
    assert found(checker) == {Guarantee.NO_LOSS}  # of the second time, which did not begin with the first
    checker.context.findings.counts.clear()
    for after, wanted in ((Position(EPOCH, 0), set()), (Position(EPOCH, 1), {Guarantee.NO_LOSS})):
        checker.lost(3)
        checker.asked(3, since="m")
        checker.message(3, replace(first, after=after, conflated=2))
        assert found(checker) == wanted  # merged over the end of the first run
