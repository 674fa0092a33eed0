"""Ranks, retries, subjects and positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.dispatch.model import State
from godwit.dispatch.pure.clients import find_client, list_networks
from godwit.dispatch.pure.items import parse_position
from godwit.dispatch.pure.rank import RANKS, is_open, may_settle
from godwit.dispatch.pure.retry import SCHEDULE_MS, retry_at
from godwit.dispatch.pure.subjects import head_subject, inbox_subject, read_owner
from godwit.subject import check_subject


def test_a_late_success_counts_and_a_late_failure_does_not() -> None:
    assert may_settle(State.QUEUED, 2, State.SENT, 1)
    assert not may_settle(State.QUEUED, 2, State.FAILED, 1)
    assert may_settle(State.SENDING, 2, State.DEFERRED, 2) and not may_settle(State.SENDING, 2, State.DEFERRED, 1)
    for final in (State.DELIVERED, State.FAILED, State.EXPIRED, State.UNKNOWN):
        assert not any(may_settle(final, 1, outcome, 1) for outcome in State)
    assert set(RANKS) == set(State) and all(is_open(state) == (RANKS[state] <= 2) for state in State)


@given(st.integers(1, 40), st.floats(0, 1, exclude_max=True), st.integers(0, 10**6))
def test_a_retry_is_later_than_now_and_before_the_end(attempt: int, chance: float, after_ms: int) -> None:
    due = retry_at(1_000, attempt, 1_000 + 10**9, chance, after_ms)
    assert due is not None and 1_000 + max(100, after_ms) <= due <= 1_000 + max(100, after_ms, 36_000_000)
    assert retry_at(1_000, attempt, 1_050, chance, after_ms) is None
    assert retry_at(0, 1, 10**9, 1.0) == 100 and SCHEDULE_MS[0] == 0


@given(st.text(min_size=1, max_size=60).filter(lambda name: max(name) < "\ud800" or min(name) > "\udfff"))
def test_every_name_is_one_segment_and_comes_back(name: str) -> None:
    for subject in (inbox_subject("shop", name), head_subject("shop", name)):
        assert read_owner(check_subject(subject)) == ("shop", name)
    assert inbox_subject(name, "ann").count("/") == 3


def test_patterns_over_several_inboxes_have_no_owner() -> None:
    for selector in ("/$inbox/**", "/$inbox/shop/*", "/$inbox/*/ann", "/$inbox/shop", "/$dispatch/shop/x", "/a/b/c"):
        assert read_owner(selector) is None
    assert read_owner("/$inbox/shop/ann/**") == ("shop", "ann")


def test_positions() -> None:
    assert parse_position("7.42") == (7, 42)
    assert not any(map(parse_position, ("", "7", "7.", ".1", "-1.2", "7.x", "1.2.3", "1" * 19 + ".1")))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("1.2.3.4", ["9.9.9.9"], "1.2.3.4"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["9.9.9.9"], "9.9.9.9"),
        ("10.0.0.1", ["6.6.6.6, 9.9.9.9"], "9.9.9.9"),
        ("10.0.0.1", ["6.6.6.6, 9.9.9.9, 10.0.0.2"], "9.9.9.9"),
        ("10.0.0.1", ["6.6.6.6", "9.9.9.9, 10.0.0.2"], "9.9.9.9"),
        ("::ffff:10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("10.0.0.1", ["9.9.9.9, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.3"], "10.0.0.3"),
        ("", ["9.9.9.9"], ""),
    ],
)
def test_only_trusted_proxies_name_a_client(peer: str, forwarded: list[str], client: str) -> None:
    assert find_client(peer, forwarded, list_networks(["10.0.0.0/8"])) == client
