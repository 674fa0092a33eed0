"""Which figures are written into the journal when, and as what rows."""

from godwit.monitoring.moments import Statistics
from godwit.monitoring.records import is_due, list_written, record_now, record_window
from godwit.monitoring.stats_snapshot import Series

NODE, JSON, CODE = ("node",), ("protocols", "json"), ("codes", "4001")


def test_each_window_is_written_once_in_its_length_and_the_long_ones_once_a_day() -> None:
    day = 86_400
    written = [name for second in range(day) for name in list_written(second, second + 1, 60)]
    assert (written.count("1min"), written.count("5min"), written.count("1h"), written.count("1d")) == (
        1440,
        288,
        24,
        1,
    )
    assert written.count("15mo") == 1 and len(set(written)) == 12


def test_no_window_is_written_more_often_than_the_interval() -> None:
    written = [name for second in range(3600) for name in list_written(second, second + 1, 600)]
    assert (written.count("1min"), written.count("15min"), written.count("1h")) == (6, 4, 1)
    assert sum(is_due(second, second + 1, 600) for second in range(3600)) == 6


def test_a_series_becomes_a_row_and_what_was_nothing_is_left_out_but_for_the_node() -> None:
    sample = {Series(NODE, "connects_per_second"): 0.0, Series(JSON, "connections"): 2.0, Series(CODE, "closes"): 0.0}
    assert list(record_now(sample)) == [
        ("connects_per_second", "node", "", "now", 0.0, (0.0, None, None, None)),
        ("connections", "protocols", "json", "now", 0.0, (2.0, None, None, None)),
    ]
    found = {
        Series(JSON, "connections"): Statistics(42.0, 3.0, 1.5, 0.5),
        Series(CODE, "closes"): Statistics(42.0, 0.0, 0.0, 0.0),
    }
    assert list(record_window("1min", found)) == [
        ("connections", "protocols", "json", "1min", 42.0, (None, 3.0, 1.5, 0.5)),
    ]
