"""A provider rests after failures in a row, then works its way up from one delivery."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from godwit.dispatch.pure.breaker import FAILURES_MAX, REST_MS, REST_MS_MAX, Breaker


def test_failures_in_a_row_open_it_and_one_delivery_tries() -> None:
    breaker = Breaker(16)
    for _ in range(FAILURES_MAX - 1):
        assert not breaker.note_failure("gone", 0)
    breaker.note_success(0)
    assert not breaker.note_failure("gone", 0), "counted in a row"
    for number in range(FAILURES_MAX - 1):
        assert breaker.note_failure("gone", 0) == (number == FAILURES_MAX - 2)
    assert breaker.rests_until(0) == REST_MS and not breaker.has_room(REST_MS - 1) and breaker.reason == "gone"
    assert breaker.has_room(REST_MS)
    breaker.begin()
    assert not breaker.has_room(REST_MS), "one probe"
    breaker.end()
    breaker.note_success(REST_MS - 1)
    assert breaker.is_probing and breaker.has_room(REST_MS), "one that began before it rested"
    breaker.note_success(REST_MS)
    for _ in range(2):
        assert breaker.has_room(REST_MS)
        breaker.begin()
    assert not breaker.has_room(REST_MS) and breaker.reason
    for _ in range(3):
        breaker.note_success(REST_MS)
    assert not breaker.reason


def test_a_probe_that_fails_rests_longer_up_to_a_bound_and_a_final_failure_rests_at_once() -> None:
    breaker = Breaker(4)
    assert breaker.note_failure("535 wrong password", 0, is_final=True)
    now_ms, rests = REST_MS, []
    for _ in range(10):
        assert breaker.note_failure("still", now_ms)
        rests.append(breaker.rests_until(now_ms) - now_ms)
        now_ms = breaker.rests_until(now_ms)
    assert rests[0] == 2 * REST_MS and rests[-1] == REST_MS_MAX


def test_one_that_takes_a_single_e_mail_rests_at_the_first_failed_probe() -> None:
    breaker = Breaker(1)
    assert breaker.note_failure("535", 0, is_final=True) and breaker.note_failure("still", REST_MS)


@given(st.lists(st.sampled_from(["begin", "end", "ok", "bad", "final", "later"]), max_size=200), st.integers(1, 20))
def test_it_always_opens_again(steps: list[str], sends_max: int) -> None:
    breaker, now_ms, in_flight = Breaker(sends_max), 0, 0
    for step in steps:
        if step == "begin" and breaker.has_room(now_ms):
            breaker.begin()
            in_flight += 1
            assert in_flight <= sends_max
        elif step == "end" and in_flight:
            breaker.end()
            in_flight -= 1
        elif step == "ok":
            breaker.note_success(now_ms)
        elif step in ("bad", "final"):
            breaker.note_failure("x", now_ms, is_final=step == "final")
        elif step == "later":
            now_ms += 5_000
    for _ in range(in_flight):
        breaker.end()
    assert breaker.has_room(now_ms + REST_MS_MAX)
