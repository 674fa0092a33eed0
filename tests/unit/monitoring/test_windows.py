"""The windows against a list of all samples: the same answers for every window at every time, with memory that is bounded."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from godwit.monitoring.moments import Statistics
from godwit.monitoring.stats_snapshot import NODE_SCOPE, Series
from godwit.monitoring.windows import LEVELS, SERIES_MAX, WINDOWS, Windows

LOAD, CODE = Series(NODE_SCOPE, "load"), Series(("codes", "4114"), "publishes_refused_per_second")
LATE = Series(("protocols", "new"), "connections")
Sample = tuple[float, float, dict[Series, float]]


def compute(samples: list[Sample], now_s: float, name: str, series: Series) -> Statistics | None:
    """The window's value, computed from all samples: those whose bucket belongs to the window."""
    window = WINDOWS[name]
    width_s = LEVELS[window.level][0]
    first = int(now_s // width_s) - window.buckets + 1
    zero = 0.0 if series.begins_at_zero else None
    within = [
        (w, sample.get(series, zero)) for time_s, w, sample in samples if int(time_s // width_s) >= first and w > 0
    ]
    known = [(weight, value) for weight, value in within if value is not None]
    if not known or not any(series in sample for _, _, sample in samples):
        return None
    whole = math.fsum(weight for weight, _ in known)
    mean = math.fsum(weight * value for weight, value in known) / whole
    squares = math.fsum(weight * (value - mean) ** 2 for weight, value in known) / whole
    return Statistics(whole, max(value for _, value in known), mean, math.sqrt(squares))


def check(windows: Windows, samples: list[Sample]) -> None:
    for name in WINDOWS:
        found = windows.read(name)
        for series in (LOAD, CODE, LATE):
            expected = compute(samples, windows.time_s, name, series)
            got = found.get(series)
            assert (got is None) == (expected is None), (name, series)
            if got is not None and expected is not None:
                assert got == pytest.approx(expected, rel=1e-9, abs=1e-9), (name, series)


steps = st.lists(
    st.tuples(
        st.sampled_from(
            [0.4, 1.0, 1.0, 1.0, 2.5, 7.0, 61.0, 3_600.0, 90_000.0, 2_000_000.0]
        ),  # seconds to the next sample
        st.sampled_from([0.0, 0.5, 1.0, 3.0]),  # its weight
        st.floats(0, 1e6),
        st.booleans(),  # whether the code is there
        st.booleans(),  # whether the late series is there
        st.integers(1, 70),  # how often this happens
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 1e9), steps)
def test_every_window_is_what_a_list_of_all_samples_says(began_s: float, found: list[tuple[float, ...]]) -> None:
    windows, samples, now_s = Windows(), [], began_s
    for step_s, weight, value, has_code, has_late, times in found:
        for turn in range(int(times)):
            now_s += step_s
            sample = {LOAD: value + turn}
            sample |= {CODE: value / 2} if has_code else {}
            sample |= {LATE: value * 2} if has_late else {}
            samples.append((now_s, weight, sample))
            windows.add(now_s, weight, sample)
        check(windows, samples)


@pytest.mark.long
def test_a_year_of_seconds_in_steps_stays_exact_and_bounded() -> None:
    windows, samples, now_s = Windows(), [], 1.7e9
    for number in range(120_000):
        now_s += 1.0 if number % 1_000 else 40_000.0
        sample = {LOAD: 1e9 + math.sin(number) * 10}
        samples.append((now_s, 1.0, sample))
        windows.add(now_s, 1.0, sample)
        if number % 9_973 == 0:
            check(windows, samples)
    assert count_buckets(windows) <= sum(kept + 1 for _, kept in LEVELS)


def count_buckets(windows: Windows) -> int:
    return sum(len(ring.closed) + (ring.open is not None) for ring in windows.rings)


def test_buckets_stay_bounded_and_rings_divide() -> None:
    for (fine_s, kept), (coarse_s, _) in pairwise(LEVELS):
        assert coarse_s % fine_s == 0 and fine_s * kept >= coarse_s
    for window in WINDOWS.values():
        width_s, kept = LEVELS[window.level]
        assert width_s * window.buckets == window.seconds and window.buckets <= kept
    assert len(WINDOWS) == 12


def test_a_young_node_tells_of_the_time_there_was_in_every_window() -> None:
    windows = Windows()
    assert all(not windows.read(name) for name in WINDOWS)
    windows.add(1_000.0, 1.0, {LOAD: 4.0})
    windows.add(1_001.0, 1.0, {LOAD: 8.0})
    assert all(windows.read(name)[LOAD] == (2.0, 8.0, 6.0, 2.0) for name in WINDOWS)


def test_what_is_older_than_a_window_leaves_it_and_stays_in_the_longer_ones() -> None:
    windows = Windows()
    windows.add(0.0, 1.0, {LOAD: 100.0})
    for second in range(1, 400):
        windows.add(float(second), 1.0, {LOAD: 1.0})
    assert windows.read("1min")[LOAD].maximum == 1.0 == windows.read("5min")[LOAD].maximum
    assert windows.read("15min")[LOAD].maximum == 100.0 == windows.read("15mo")[LOAD].maximum
    assert windows.read("1min")[LOAD].weight == 60.0


def test_time_that_goes_back_changes_no_past() -> None:
    windows = Windows()
    windows.add(50.0, 1.0, {LOAD: 1.0})
    windows.add(10.0, 1.0, {LOAD: 3.0})
    assert windows.time_s == 50.0 and windows.read("1min")[LOAD].weight == 2.0


def test_more_series_than_there_can_be_have_no_place() -> None:
    windows = Windows()
    windows.add(1.0, 1.0, {Series(("codes", str(number)), "x"): 1.0 for number in range(SERIES_MAX + 10)})
    assert len(windows.series) == SERIES_MAX == len(windows.read("1h"))
    assert windows.place(Series(NODE_SCOPE, "late")) == -1
