"""Local times of receivers: the end of quiet hours, and when a wall-clock time occurs in a zone.

Pure. A time that daylight saving skips becomes the next valid one; of an ambiguous time the later one is used.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
STAGGER_MS = 600_000
"""Quiet hours of many receivers end together; their deliveries are spread over this time."""
EAST_MS = 14 * 3_600_000
"""How much earlier than in UTC a wall-clock time occurs in the easternmost zone."""
WEST_MS = 12 * 3_600_000
"""How much later than in UTC it occurs in the westernmost zone."""


def is_time(text: str) -> bool:
    """Whether a text is a time of day, HH:MM."""
    return _TIME.fullmatch(text) is not None


@lru_cache(maxsize=1_000)
def find_zone(name: str) -> tzinfo | None:
    """A zone of the IANA database; UTC for an empty name, None for one that does not exist."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def local_ms(wall: datetime, zone: tzinfo, *, is_first: bool = False) -> int:
    """When a wall-clock time occurs in a zone, in Unix milliseconds; with `is_first` the earlier of two."""
    earlier, later = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    is_skipped = later.utcoffset() != earlier.utcoffset() and _returns(earlier, zone) != wall
    chosen = _after_gap(earlier, zone) if is_skipped else earlier if is_first else later
    return int(chosen.timestamp()) * 1_000


def quiet_until_ms(now_ms: int, zone: tzinfo, start: str, end: str, stagger: int) -> int | None:
    """The end of the quiet hours that contain `now_ms`, later by `stagger`: by up to `STAGGER_MS`, and never as late as the next
    quiet hours. None outside of quiet hours.
    """
    local = datetime.fromtimestamp(now_ms / 1_000, zone)
    starts, ends = time.fromisoformat(start), time.fromisoformat(end)
    if local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset():  # an hour that occurs twice
        end_ms = _find_end(now_ms, local, zone, starts, ends)
    else:
        end_ms = _read_end(local, zone, starts, ends)
    return None if end_ms is None else max(end_ms, now_ms + 1) + stagger % min(STAGGER_MS, _open_ms(starts, ends))


def _open_ms(starts: time, ends: time) -> int:
    """How long the time between the end of quiet hours and their next start is; a day where they are the same time."""
    minutes = (starts.hour * 60 + starts.minute) - (ends.hour * 60 + ends.minute)
    return (minutes % 1_440 or 1_440) * 60_000


def _read_end(local: datetime, zone: tzinfo, starts: time, ends: time) -> int | None:
    """The end of the quiet hours that contain a wall-clock time which occurs once."""
    clock, day = local.time(), local.date()
    if starts <= ends:
        is_quiet = starts <= clock < ends
    else:
        is_quiet = clock >= starts or clock < ends
        day += timedelta(days=int(clock >= starts))
    return local_ms(datetime.combine(day, ends), zone) if is_quiet else None


def _find_end(now_ms: int, local: datetime, zone: tzinfo, starts: time, ends: time) -> int | None:
    """The same by comparing moments: quiet hours last from the first time that the clock shows their start to the last time
    that it shows their end, and the clock alone does not say which time it is.
    """
    found = None
    for days in (-1, 0) if starts != ends else ():
        day = local.date() + timedelta(days=days)
        begin_ms = local_ms(datetime.combine(day, starts), zone, is_first=True)
        last_day = day + timedelta(days=int(starts > ends))
        end_ms = local_ms(datetime.combine(last_day, ends), zone)
        if begin_ms <= now_ms < end_ms:
            found = end_ms
    return found


def _returns(aware: datetime, zone: tzinfo) -> datetime:
    return aware.astimezone(UTC).astimezone(zone).replace(tzinfo=None)


def _after_gap(skipped: datetime, zone: tzinfo) -> datetime:
    """The first valid time after the gap that a skipped time lies in."""
    offset = skipped.replace(fold=1).utcoffset() or timedelta()
    gap = (skipped.replace(fold=0).utcoffset() or timedelta()) - offset
    low = skipped.replace(fold=0).astimezone(UTC) - abs(gap)
    high = skipped.replace(fold=0).astimezone(UTC)
    before = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)
