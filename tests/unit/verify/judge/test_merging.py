"""Merged messages across the end of a run: they are compared with everything that the journal restored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from godwit.model import Kind, Message, Outcome, Position
from godwit.verify.judge.checker import Checker
from godwit.verify.judge.finding import Guarantee
from godwit.verify.judge.merging import Merging
from tests.unit.verify.judge.model import EPOCH, SUBJECT, content, context, merged, message, publish

NEXT = 8
LAST = 10
FIRST_OF_NEXT = Message(SUBJECT, content(LAST + 1), position=Position(NEXT, 1), after=Position(EPOCH, LAST))


@pytest.mark.parametrize(("begin", "wanted"), [(1, set()), (LAST, {Guarantee.MERGE})])
@pytest.mark.parametrize("hears_first", ["the merged", "the single"])
def test_what_was_merged_over_the_end_of_a_run_does_not_say_where_that_was(
    hears_first: str, begin: int, wanted: set[Guarantee]
) -> None:
    one = context()
    one.rules = replace(one.rules, keeps_journal=True)
    one.merging = Merging(one.expected, keeps_journal=True)
    slow, other = (Checker(name, SUBJECT, one) for name in ("slow", "other"))
    for checker in (slow, other):
        checker.asked(0)
        checker.joined(0, Position(EPOCH, 0), Outcome.LIVE)
    publish(one.expected, LAST)
    slow.message(0, message(1))
    for number in range(1, LAST + 1):
        other.message(0, message(number))
    one.expected.restart()
    one.restarts += 1
    publish(one.expected, 1, epoch=NEXT)
    content_of_all = merged(begin, LAST + 1)
    of_all = Message(SUBJECT, content_of_all, Kind.JSON, Position(NEXT, 1), Position(EPOCH, 1), conflated=LAST)
    expected = [(slow, of_all), (other, FIRST_OF_NEXT)]
    for checker, what in expected if hears_first == "the merged" else reversed(expected):
        checker.message(1, what)
    found = {violation.guarantee for violation, *_ in one.merging.review(is_end=True)} | set(one.findings.counts)
    assert found == wanted
    assert one.merging.unjudged == 0
    assert one.expected.followed(SUBJECT, NEXT) == Position(EPOCH, LAST)
