"""Merged rows are what one pass over all samples would be, to the last digits, however they are cut."""

import math
from array import array
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.monitoring.moments import FIELDS, fill_row, make_row, merge_row, merge_rows, read_row

samples = st.lists(
    st.tuples(st.floats(0.01, 10), st.floats(0, 1e9)), min_size=1, max_size=60
)  # (weight, value) as a node has them


def exact(found: list[tuple[float, float]]) -> tuple[float, float, float]:
    """(maximum, mean, deviation) in fractions."""
    pairs = [(Fraction(weight), Fraction(value)) for weight, value in found]
    whole = sum(weight for weight, _ in pairs)
    mean = sum(weight * value for weight, value in pairs) / whole
    squares = sum(weight * (value - mean) ** 2 for weight, value in pairs) / whole
    return max(value for _, value in found), float(mean), math.sqrt(squares)


@given(samples, st.integers(1, 60))
def test_rows_merge_to_what_all_samples_come_to(found: list[tuple[float, float]], cut: int) -> None:
    rows = [make_row(weight, [value, -value]) for weight, value in found]
    one = array("d", rows[0])
    for row in rows[1:]:
        merge_row(one, row)
    parts = [merge_rows(rows[at : at + cut], 2) for at in range(0, len(rows), cut)]
    for merged in (one, merge_rows(rows, 2), merge_rows(parts, 2)):
        statistics = read_row(merged, 0)
        assert statistics is not None
        maximum, mean, deviation = exact(found)
        assert statistics.maximum == maximum
        assert statistics.mean == pytest.approx(mean, rel=1e-12, abs=1e-12)
        assert statistics.deviation == pytest.approx(deviation, rel=1e-6, abs=1e-7 * maximum + 1e-12)
        assert statistics.weight == pytest.approx(sum(weight for weight, _ in found))


def test_values_that_are_large_and_close_keep_their_deviation() -> None:
    """Sums of squares would answer 0 here, or the root of a negative number."""
    rows = [make_row(1.0, [1e12 + offset]) for offset in (0.0, 1.0, 2.0)]
    one = array("d", rows[0])
    merge_row(one, rows[1])
    merge_row(one, rows[2])
    for row in (one, merge_rows(rows, 1)):
        statistics = read_row(row, 0)
        assert statistics is not None and statistics.deviation == pytest.approx(math.sqrt(2 / 3), rel=1e-9)


def test_what_a_row_does_not_know_stays_unknown_or_was_zero() -> None:
    row = fill_row(make_row(2.0, [5.0]), [False, True, False])
    assert len(row) == 3 * FIELDS and read_row(row, 2) is None and read_row(row, 9) is None
    zero = read_row(row, 1)
    assert zero is not None and zero == (2.0, 0.0, 0.0, 0.0)
    merge_row(row, fill_row(array("d"), []) or array("d", [0.0] * 3 * FIELDS))
    assert read_row(row, 2) is None and merge_rows([], 1)[0] == 0.0
