"""Watches: selectors that meet, and changes folded to their latest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.client.watching import Watching, meets
from godwit.model import Interest
from godwit.subject import matches


@pytest.mark.parametrize(
    ("one", "other", "is_met"),
    [
        ("/a", "/a", True),
        ("/a", "/b", False),
        ("/a/*", "/a/b", True),
        ("/a/*", "/a", False),
        ("/a/**", "/a", True),
        ("/a/**", "/a/*/c", True),
        ("/*/b", "/a/*", True),
        ("/*/b", "/a/c", False),
        ("/**", "/$node/x", False),
        ("/*/x", "/$node/x", False),
        ("/$node/**", "/$node/x", True),
        ("/a/*/**", "/a", False),
    ],
)
def test_selectors_meet(one: str, other: str, is_met: bool) -> None:
    assert meets(one, other) is meets(other, one) is is_met


segments = st.lists(st.sampled_from(["a", "b", "$s"]), min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))
patterns = st.builds(
    lambda parts, rest: "/" + "/".join([*parts, *rest]),
    st.lists(st.sampled_from(["a", "b", "*", "$s"]), min_size=1, max_size=3),
    st.sampled_from([[], ["**"]]),
)


@given(patterns, patterns, segments)
def test_a_subject_of_both_means_that_they_meet(one: str, other: str, subject: str) -> None:
    if matches(one, subject) and matches(other, subject):
        assert meets(one, other)
    assert meets(one, subject) is matches(one, subject)


def changes(watching: Watching) -> list[tuple[str, bool]]:
    found = []
    while (change := watching.take()) is not None:
        found.append((change.subject, change.has_subscribers))
    return found


def test_reader_that_is_behind_is_told_the_latest() -> None:
    watching = Watching("/a/**")
    for subject, listens in (("/a/1", True), ("/a/2", True), ("/a/2", False), ("/b", True), ("/a/1", True)):
        watching.reported(Interest(subject, listens))
    assert changes(watching) == [("/a/1", True)]
    watching.reported(Interest("/a/1", True))
    assert changes(watching) == []


def test_those_who_left_while_we_were_away_are_told_gone() -> None:
    watching = Watching("/a/**")
    watching.ask(1)
    for subject in ("/a/1", "/a/2"):
        watching.reported(Interest(subject, True))
    assert sorted(changes(watching)) == [("/a/1", True), ("/a/2", True)]
    watching.ask(2)
    watching.state_reported(is_complete=False)
    watching.reported(Interest("/a/2", True))
    assert changes(watching) == []
    watching.state_reported(is_complete=True)
    assert changes(watching) == [("/a/1", False)]
    watching.state_reported(is_complete=True)
    assert changes(watching) == []


def test_a_state_that_is_cut_off_says_nobody_gone() -> None:
    watching = Watching("/a/**")
    watching.reported(Interest("/a/1", True))
    watching.state_reported(is_complete=False)
    watching.state_reported(is_complete=False)  # of another connection
    watching.reported(Interest("/a/2", True))
    watching.reported(Interest("/a/1", True))
    watching.state_reported(is_complete=True)
    assert sorted(changes(watching)) == [("/a/1", True), ("/a/2", True)]
