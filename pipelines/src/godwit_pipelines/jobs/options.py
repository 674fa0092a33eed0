"""What the options of jobs hold: times and numbers, told wrong in a sentence before Spark starts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from ..errors import ConfigInvalid


def time_of(options: Mapping[str, str], name: str) -> datetime | None:
    """The time of an option, in UTC; none where it is not given. Raises ConfigInvalid for what is no time."""
    text = options.get(name, "").strip()
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ConfigInvalid(
            f"--option {name}", text, "must be a day, or a time of a day, in UTC", hint="2026-11-21 10:00"
        ) from None


def text_of(time: datetime | None) -> str:
    """As Spark reads it in a session of UTC; empty for none."""
    return "" if time is None else time.replace(tzinfo=None).isoformat(" ")
