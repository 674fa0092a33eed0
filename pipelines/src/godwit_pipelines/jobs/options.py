"""Parses the options of jobs: times, durations and numbers. Errors are reported before Spark starts. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from ..errors import ConfigInvalid
from ..values.numbers import parse_count, parse_number

FORGET = "forget"
FORGET_OPTION = {FORGET: "yes: --rebuild also removes days that the tables which the job reads no longer have."}
_UNITS_S = {"millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3_600.0, "day": 86_400.0, "week": 604_800.0}
_SPAN = re.compile(rf"\s*(\d{{1,12}})\s+({'|'.join(_UNITS_S)})s?(?:\s|\Z)", re.IGNORECASE | re.ASCII)
_SHORT = re.compile(r"(\d{1,9})(\.\d{1,9})?(ms|s|m|h|d)", re.ASCII)
_SPELT = {"ms": "millisecond", "s": "second", "m": "minute", "h": "hour", "d": "day"}
_SPAN_S_MAX = 366 * 86_400.0


def time_of(options: Mapping[str, str], name: str) -> datetime | None:
    """The time of an option in UTC; a duration counts back from now. None if it is not given. Raises ConfigInvalid for other text."""
    text = options.get(name, "").strip()
    if not text:
        return None
    seconds = seconds_of(spell(text))
    if seconds is not None and seconds <= _SPAN_S_MAX:
        return datetime.now(UTC) - timedelta(seconds=seconds)
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ConfigInvalid(
            f"--option {name}",
            text,
            "must be a date or a time in UTC, or a duration before now",
            hint="2026-11-21 10:00, or 24h",
        ) from None


def text_of(time: datetime | None) -> str:
    """The time as text for Spark in a session of UTC; empty for None."""
    return "" if time is None else time.replace(tzinfo=None).isoformat(" ")


def number_of(options: Mapping[str, str], name: str, default: float, low: float, high: float) -> float:
    """The number of an option; a whole number if the default is one. Raises ConfigInvalid if it is not a number, or out of bounds."""
    text = options.get(name, str(default))
    found = parse_count(text) if isinstance(default, int) else parse_number(text)
    if found is None or not low <= found <= high:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ConfigInvalid(f"--option {name}", text, f"must be {kind} from {low:,.15g} to {high:,.15g}")
    return found


def is_yes(options: Mapping[str, str], name: str, default: str) -> bool:
    """Whether an option is `yes`. Raises ConfigInvalid for anything but yes and no."""
    text = options.get(name, default)
    if text not in ("yes", "no"):
        raise ConfigInvalid(f"--option {name}", text, "must be yes or no")
    return text == "yes"


def span_of(options: Mapping[str, str], name: str, default: str, *, may_be_none: bool = False) -> str:
    """The duration of an option in Spark's form: one or more of NUMBER UNIT, or 10s. Raises ConfigInvalid for other text."""
    text = options.get(name, default)
    seconds = seconds_of(spelt := spell(text))
    if seconds is None or not (0 < seconds <= _SPAN_S_MAX or (seconds == 0 and may_be_none)):
        raise ConfigInvalid(f"--option {name}", text, "must be a duration of at most 366 days", hint="1 second")
    return spelt


def spell(text: str) -> str:
    """The duration in words, because Spark accepts only whole numbers: 10s is 10 seconds, 1.5s is 1500 milliseconds. Other text is
    unchanged.
    """
    short = _SHORT.fullmatch(text)
    if short is None:
        return text
    whole, fraction, unit = short[1], short[2], _SPELT[short[3]]
    return f"{float(whole + fraction) * _UNITS_S[unit] * 1000:.0f} milliseconds" if fraction else f"{whole} {unit}s"


def seconds_of(text: str) -> float | None:
    """A duration, one or more of NUMBER UNIT, in seconds; None for other text."""
    rest, seconds = text, 0.0
    while found := _SPAN.match(rest):
        rest, seconds = rest[found.end() :], seconds + int(found[1]) * _UNITS_S[found[2].lower()]
    return None if rest or not text else seconds


def check_forget(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for anything but yes and no."""
    is_yes(options, FORGET, "no")
