"""The causes of gaps: restarts, messages that were not on the disk, and logs that advanced, also across runs that a journal joins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from godwit.model import Gap, GapReason, Position
from godwit.verify.judge.cause import judge_cause
from godwit.verify.judge.context import CheckContext
from godwit.verify.judge.finding import Guarantee
from tests.unit.verify.judge.model import EPOCH, SUBJECT, context, gap, publish

LOG_MAX = 4
NEXT = EPOCH + 1


def over_two_runs(before: int, since: int, held: int | None = None) -> CheckContext:
    """So many messages before a restart and since; the journal holds all of the first run, or less."""
    found = context(LOG_MAX)
    found.rules = replace(found.rules, keeps_journal=True)
    publish(found.expected, before)
    found.expected.restart()
    found.restarts += 1
    publish(found.expected, since, epoch=NEXT)
    found.expected.follow(SUBJECT, NEXT, Position(EPOCH, before if held is None else held))
    return found


def gap_of(after: str, at: str, missed: int | None, reason: GapReason = GapReason.OVERRUN) -> Gap:
    return Gap(SUBJECT, Position.parse(at), Position.parse(after), reason, missed)


def test_a_log_has_a_cause_where_more_than_it_keeps_was_published() -> None:
    trial = context(LOG_MAX)
    publish(trial.expected, 10)
    assert judge_cause(trial, gap(5, 10), 0, goes_on_from_oldest=False) is None
    assert judge_cause(trial, gap(6, 10), 0, goes_on_from_oldest=False) is not None
    assert judge_cause(trial, gap(6, 10), 10**9, goes_on_from_oldest=False) is None  # too old by then
    assert judge_cause(trial, gap(4, 6), 0, goes_on_from_oldest=True) is None


@pytest.mark.parametrize(("since", "is_found"), [(0, True), (1, False), (3, False)])
def test_what_a_log_keeps_is_counted_over_the_runs_that_a_journal_joins(since: int, is_found: bool) -> None:
    """A reader who goes on from the oldest is placed in the run before, while the log keeps messages of this one."""
    trial = over_two_runs(10, since)
    violation = judge_cause(trial, gap_of("7.6", "7.9", 3), 0, goes_on_from_oldest=True)
    assert (violation is not None) == is_found


def test_a_gap_over_a_restart_counts_right_and_needs_a_cause_too() -> None:
    trial = over_two_runs(10, 3)
    assert judge_cause(trial, gap_of("7.8", "8.3", 5), 0, goes_on_from_oldest=False) is None
    wrong = judge_cause(trial, gap_of("7.8", "8.3", 6), 0, goes_on_from_oldest=False)
    assert wrong is not None and "exactly 5 are missing" in wrong.sentence
    none = judge_cause(trial, gap_of("7.9", "8.3", 4), 0, goes_on_from_oldest=False)
    assert none is not None and none.guarantee is Guarantee.GAPS and "the log keeps 4" in none.sentence


@pytest.mark.parametrize(("after", "is_found"), [("7.8", True), ("7.9", False), ("7.0", False)])
def test_who_stood_where_the_journal_reaches_is_not_told_that_nobody_knows(after: str, is_found: bool) -> None:
    trial = over_two_runs(10, 3, held=8)
    unknown = gap_of(after, "8.3", None, GapReason.EPOCH)
    assert (judge_cause(trial, unknown, 0, goes_on_from_oldest=False) is not None) == is_found


def test_a_run_that_nobody_restarted_is_no_cause_and_what_the_expected_cannot_know_is_not_held_against_the_node() -> (
    None
):
    trial = context(LOG_MAX)
    publish(trial.expected, 3)
    assert judge_cause(trial, gap_of("7.3", "8.0", None, GapReason.EPOCH), 0, goes_on_from_oldest=False) is not None
    unlinked = over_two_runs(10, 1)
    unlinked.expected.runs[SUBJECT].clear()
    publish(unlinked.expected, 1, epoch=NEXT + 1)
    assert judge_cause(unlinked, gap_of("7.9", "9.1", 1), 0, goes_on_from_oldest=False) is None


def test_what_a_jump_of_the_clock_made_look_old_after_a_restart_is_no_fault_of_the_log() -> None:
    trial = over_two_runs(10, 3)
    expired = gap_of("7.9", "8.3", 4, GapReason.EXPIRED)
    assert judge_cause(trial, expired, 0, goes_on_from_oldest=False) is not None
    trial.is_clock_moved = True
    assert judge_cause(trial, expired, 0, goes_on_from_oldest=False) is None
    assert judge_cause(trial, gap_of("7.9", "8.3", 4), 0, goes_on_from_oldest=False) is not None
