"""The times and lengths of time that options hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from godwit_pipelines.errors import ConfigInvalid
from godwit_pipelines.jobs.options import seconds_of, span_of, time_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("24 hours", 86_400),
        ("1 day 30 minutes", 88_200),
        ("0 seconds", 0),
        ("2026-11-21", None),
        ("", None),
        ("1 day ago", None),
    ],
)
def test_lengths_of_time_are_read(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


def test_a_length_of_time_is_so_long_ago_whenever_it_is_asked() -> None:
    ago = timedelta(hours=36)
    earliest = datetime.now(UTC) - ago
    found = time_of({"since": " 1 day 12 hours "}, "since")
    assert found is not None and earliest <= found <= datetime.now(UTC) - ago
    found = time_of({"since": "36h"}, "since")
    assert found is not None and earliest <= found <= datetime.now(UTC) - ago
    assert time_of({"since": ""}, "since") is None


def test_a_time_is_of_utc_and_what_is_none_is_told() -> None:
    assert time_of({"since": "2026-11-21T11:30+01:00"}, "since") == datetime(2026, 11, 21, 10, 30, tzinfo=UTC)
    for text in ("yesterday", "367 days", "-1 hours", "1 fortnight", "99999-01-01"):
        with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--option since"):
            time_of({"since": text}, "since")


def test_a_short_length_of_time_is_spelt_as_spark_reads_it() -> None:
    lengths = {
        "1s": "1 seconds",
        "500ms": "500 milliseconds",
        "90m": "90 minutes",
        "2d": "2 days",
        "1.5h": "5400000 milliseconds",
        "0.25s": "250 milliseconds",
        "1 second": "1 second",
    }
    assert {given: span_of({"width": given}, "width", "") for given in lengths} == lengths
    for text in ("s", "1", ".5h", "1.h", "1 s", "0s", "0.0001s", "400d"):
        with pytest.raises(ConfigInvalid, match="must be a duration"):
            span_of({"width": text}, "width", "")
