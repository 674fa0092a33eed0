"""Quiet hours on the days on which clocks change: one interval of moments, in zones whose offsets are no whole hours, too."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.dispatch.pure.quiet import STAGGER_MS, find_zone, local_ms, quiet_until_ms

MINUTE_MS = 60_000
CHANGES = [
    ("Europe/Berlin", "2026-03-29T01:00+00:00"),
    ("Europe/Berlin", "2026-10-25T01:00+00:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00+00:00"),  # by half an hour
    ("Australia/Lord_Howe", "2026-10-03T15:30+00:00"),
    ("Pacific/Chatham", "2026-04-04T14:00+00:00"),  # +13:45 and +12:45
    ("Pacific/Chatham", "2026-09-26T14:00+00:00"),
    ("America/St_Johns", "2026-11-01T04:30+00:00"),
    ("America/Havana", "2026-03-08T05:00+00:00"),  # midnight is skipped
    ("America/Havana", "2026-11-01T05:00+00:00"),  # midnight occurs twice
    ("Antarctica/Troll", "2026-10-25T01:00+00:00"),  # by two hours
    ("Asia/Kathmandu", "2026-03-29T01:00+00:00"),  # +05:45, without changes
]


def read_zone(name: str) -> tzinfo:
    zone = find_zone(name)
    assert zone is not None
    return zone


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000)


def list_moments(zone: tzinfo, around_ms: int) -> dict[datetime, list[int]]:
    """Every minute within two days of a moment, by what the clock shows."""
    shown: dict[datetime, list[int]] = {}
    for number in range(-2_880, 2_880):
        moment_ms = around_ms + number * MINUTE_MS
        shown.setdefault(datetime.fromtimestamp(moment_ms / 1_000, zone).replace(tzinfo=None), []).append(moment_ms)
    return shown


def list_nights(shown: dict[datetime, list[int]], starts: time, ends: time) -> list[tuple[int, int]]:
    """Begin and end of the quiet hours of each day, read off the clock minute by minute."""
    nights = []
    days = sorted({wall.date() for wall in shown})
    for day in days[:-1]:
        begin, end = datetime.combine(day, starts), datetime.combine(day + timedelta(days=int(starts > ends)), ends)
        after_begin = min((wall for wall in shown if wall >= begin), default=None)
        after_end = min((wall for wall in shown if wall >= end), default=None)
        if after_begin is not None and after_end is not None:
            nights.append((shown[after_begin][0], shown[after_end][-1 if after_end == end else 0]))
    return nights


@pytest.mark.parametrize(("zone_name", "change"), CHANGES)
@given(
    minutes=st.integers(-180, 180),
    start=st.integers(0, 95).map(lambda quarter: time(quarter // 4, quarter % 4 * 15)),
    end=st.integers(0, 95).map(lambda quarter: time(quarter // 4, quarter % 4 * 15)),
)
def test_quiet_hours_are_what_a_clock_shows(zone_name: str, change: str, minutes: int, start: time, end: time) -> None:
    zone, now_ms = read_zone(zone_name), at(change) + minutes * MINUTE_MS
    found = quiet_until_ms(now_ms, zone, f"{start:%H:%M}", f"{end:%H:%M}", 0)
    nights = [] if start == end else list_nights(MOMENTS[zone_name, change], start, end)
    ends_ms = [end_ms for begin_ms, end_ms in nights if begin_ms <= now_ms < end_ms]
    assert (found is not None) == bool(ends_ms)
    assert found is None or found in ends_ms


MOMENTS = {(zone, change): list_moments(read_zone(zone), at(change)) for zone, change in CHANGES}


@pytest.mark.parametrize(
    ("now", "start", "end", "until"),
    [
        ("2026-10-25T02:40+02:00", "22:00", "02:30", "2026-10-25T02:30+01:00"),  # 02:30 comes again
        ("2026-10-25T02:10+01:00", "02:30", "07:00", "2026-10-25T07:00+01:00"),  # 02:30 has been
        ("2026-10-25T02:30+01:00", "22:00", "02:30", None),
        ("2026-10-25T02:20+02:00", "02:30", "07:00", None),
    ],
)
def test_an_hour_that_occurs_twice_is_quiet_as_a_whole(now: str, start: str, end: str, until: str | None) -> None:
    found = quiet_until_ms(at(now), read_zone("Europe/Berlin"), start, end, 0)
    assert found == (None if until is None else at(until))


@pytest.mark.parametrize(("zone_name", "change"), CHANGES)
def test_a_local_time_is_the_next_valid_or_the_later_one(zone_name: str, change: str) -> None:
    zone, shown = read_zone(zone_name), MOMENTS[zone_name, change]
    around = datetime.fromtimestamp(at(change) / 1_000, UTC).astimezone(zone).replace(tzinfo=None)
    for quarter in range(-12, 13):
        wall = around + timedelta(minutes=15 * quarter)
        after = min(one for one in shown if one >= wall)
        assert local_ms(wall, zone) == shown[after][-1 if after == wall else 0], wall


@pytest.mark.parametrize(("start", "end"), [("22:00", "21:55"), ("00:00", "23:59"), ("22:00", "07:00")])
def test_nobody_is_deferred_into_the_next_quiet_hours(start: str, end: str) -> None:
    begin_ms = at("2026-05-01T22:30+00:00")
    for stagger in range(0, STAGGER_MS, MINUTE_MS // 4):
        due_ms = quiet_until_ms(begin_ms, UTC, start, end, stagger)
        assert due_ms is not None and quiet_until_ms(due_ms, UTC, start, end, stagger) is None
