"""The tree of metrics, its parts on `$node`, and rounded numbers; unknown values are left out."""

import json

import pytest

from godwit.monitoring.moments import Statistics
from godwit.monitoring.presentation import (
    list_due,
    list_pushes,
    make_root,
    shorten,
    show_now,
    show_window,
)
from godwit.monitoring.stats_snapshot import NODE_SCOPE, Series
from godwit.monitoring.windows import WINDOWS
from godwit.subject import check_subject, matches

SAMPLE = {
    Series(NODE_SCOPE, "connections"): 3.0,
    Series(("shards", "0"), "cpu"): 0.25,
    Series(("protocols", "json"), "gaps_per_second"): 0.0,
    Series(("codes", "4114"), "closes_per_second"): 1.0,
    Series(("reasons", "ahead"), "gaps_per_second"): 2.0,
}


@pytest.mark.parametrize(
    "name, segment",
    [("n1", "n1"), ("a b/c*", "a-b-c"), ("", "node"), ("..", "node"), ("é" * 90, "node"), ("x" * 90, "x" * 64)],
)
def test_any_node_name_makes_one_legal_segment(name: str, segment: str) -> None:
    assert make_root(name) == f"/$node/{segment}"
    check_subject(make_root(name) + "/now")


def test_each_scope_is_one_message_of_flat_fields() -> None:
    pushes = {subject: json.loads(content) for subject, content in list_pushes("/$node/n", "now", 7, show_now(SAMPLE))}
    assert pushes == {
        "/$node/n/now": {"time": 7, "connections": 3},
        "/$node/n/shards/0/now": {"time": 7, "cpu": 0.25},
        "/$node/n/protocols/json/now": {"time": 7, "gaps_per_second": 0},
        "/$node/n/codes/now": {"time": 7, "4114": {"closes_per_second": 1}},
        "/$node/n/reasons/now": {"time": 7, "ahead": {"gaps_per_second": 2}},
    }
    assert not any(matches("/**", subject) for subject in pushes), "no leading wildcard hears of them"


def test_a_window_says_how_much_of_it_is_known() -> None:
    tree = show_window("5min", {Series(NODE_SCOPE, "cpu"): Statistics(12.0, 0.9, 0.1234567, 0.0)})
    assert (tree["seconds"], tree["covered_seconds"]) == (300, 12)
    assert tree["node"] == {"cpu": {"max": 0.9, "mean": 0.123457, "deviation": 0}} and tree["shards"] == {}
    (subject, content), *_ = list_pushes("/$node/n", "5min", 7, tree)
    assert subject == "/$node/n/5min" and json.loads(content)["covered_seconds"] == 12
    assert show_window("1h", {})["covered_seconds"] == 0


@pytest.mark.parametrize(
    "value, shown", [(3.0, 3), (0.1234567, 0.123457), (123456789.25, 123456789), (1e-9, 1e-9), (2.0**60, 2**60)]
)
def test_numbers_keep_six_digits_and_whole_ones_all(value: float, shown: float) -> None:
    assert shorten(value) == shown


def test_a_window_is_pushed_sixty_times_in_its_length_within_5_and_60_seconds() -> None:
    pushed = dict.fromkeys(WINDOWS, 0)
    for second in range(1, 3_601):
        for name in list_due(second - 1.0, float(second)):
            pushed[name] += 1
    assert (pushed["1min"], pushed["5min"], pushed["15min"]) == (720, 720, 240)
    assert {pushed[name] for name in WINDOWS if WINDOWS[name].seconds >= 3_600} == {60}
    assert list_due(10.0, 10.4) == [] and list_due(59.9, 60.0) == list(WINDOWS)
