"""Back-off: a pure function, so its bounds are simply looked at."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.client.backoff import WISH_MS_MAX, Backoff, reconnect_wait_ms, wish_of, words_of
from godwit.client.settings import Settings

FIRST, MOST = Settings().reconnect_first_ms, Settings().reconnect_max_ms
randoms = st.floats(min_value=0, max_value=1, exclude_max=True)


@given(st.integers(min_value=0, max_value=10_000), randoms)
def test_wait_is_within_its_doubling_bound(failures: int, random: float) -> None:
    assert 0 <= reconnect_wait_ms(failures, random, FIRST, MOST) <= min(MOST, FIRST * 2 ** min(failures, 30))


@given(randoms)
def test_first_try_comes_within_a_second(random: float) -> None:
    backoff = Backoff(FIRST, MOST)
    backoff.lost(5_000, None)
    assert backoff.wait_ms(random) < 1_000


def test_each_failure_doubles_the_bound_and_a_connection_that_held_begins_anew() -> None:
    backoff, waits = Backoff(FIRST, MOST), []
    for _ in range(9):
        backoff.lost(None, None)
        waits.append(backoff.wait_ms(0.5))
    assert waits == [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000]
    backoff.lost(FIRST, None)
    assert backoff.wait_ms(0.5) == 500


def test_connection_that_never_holds_is_not_hammered() -> None:
    backoff = Backoff(FIRST, MOST)
    for _ in range(5):
        backoff.lost(FIRST - 1, None)
    assert backoff.wait_ms(0.5) == 8_000


def test_waits_are_20_seconds_at_most_and_a_longer_spread_of_a_drain_is_kept() -> None:
    backoff = Backoff(FIRST, MOST)
    for _ in range(40):
        backoff.lost(None, None)
    assert backoff.wait_ms(0.999) < 20_000
    backoff.lost(None, 45_000)
    assert backoff.wait_ms(0.5) == 45_000


def test_wish_of_the_server_goes_before_and_holds_once() -> None:
    backoff = Backoff(FIRST, MOST)
    backoff.lost(None, 1_200)
    assert backoff.wait_ms(0.99) == 1_200
    backoff.lost(None, None)
    assert backoff.wait_ms(0.5) == 1_000


@pytest.mark.parametrize(
    ("reason", "wish"),
    [
        ('{"reconnect_after_ms":1200}', 1200),
        ('{"reconnect_after_ms":-5}', 0),
        ('{"reconnect_after_ms":99999999999}', WISH_MS_MAX),
        ('{"reconnect_after_ms":"soon"}', None),
        ('{"name":"Draining"}', None),
        ("[1]", None),
        ("going away", None),
        ("", None),
    ],
)
def test_wish_is_read_from_a_close_reason(reason: str, wish: int | None) -> None:
    assert wish_of(reason) == wish


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        (
            4002,
            '{"name":"TokenInvalid","reason":"it is for another audience"}',
            "TokenInvalid: it is for another audience",
        ),
        (4005, '{"name":"TokenRevoked"}', "TokenRevoked: The token, or the identity it names, has been revoked."),
        (4999, '{"name":"Unheard"}', "Unheard"),
        (
            4200,
            '{"name":"Draining","reconnect_after_ms":1200}',
            "Draining: The node stops or makes room; reconnect after 1200 ms.",
        ),
        (4200, '{"name":"Draining"}', "Draining: The node stops or makes room; reconnect later."),
        (None, '{"name":7}', '{"name":7}'),
        (None, '{"reason":"refused with 503","reconnect_after_ms":5}', "refused with 503"),
        (1006, "[1]", "[1]"),
        (None, "cannot connect", "cannot connect"),
        (1000, "", "the server closed the connection (1000)"),
        (None, "", ""),
    ],
)
def test_a_close_reason_is_words_for_people(code: int | None, reason: str, words: str) -> None:
    assert words_of(code, reason) == words
