"""Every hostile input has a test that names it, or a reason; the guide shows exactly that."""

from tests.hostile import matrix
from tests.hostile.table import BEGIN, GUIDE, find_tests, put_table, read_cases


def test_all_72_are_listed_once_and_in_order() -> None:
    assert [case["number"] for case in read_cases()] == list(range(1, 73))


def test_each_has_a_test_that_names_it_or_a_reason_and_not_both() -> None:
    tests = find_tests()
    wrong = [case["number"] for case in read_cases() if (case["number"] in tests) is ("left" in case)]
    assert not wrong, "cases without a test and without a reason, or with both"


def test_no_test_names_a_case_that_is_none() -> None:
    assert not [number for number in find_tests() if not 1 <= number <= 72]


def test_the_guide_shows_them_as_they_are() -> None:
    text = GUIDE.read_text("utf-8")
    assert BEGIN in text and matrix.BEGIN in text and put_table(text) == text, "run python -m tests.hostile.table"
