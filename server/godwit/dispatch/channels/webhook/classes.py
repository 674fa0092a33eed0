"""What an HTTP answer means for a webhook's delivery. Pure."""

from __future__ import annotations

from ...model import Result


def classify(status: int) -> Result:
    """The class of an HTTP status."""
    if 200 <= status <= 299:
        return Result.OK
    if status in (408, 425, 429) or status >= 500:
        return Result.TEMPORARY
    return Result.ADDRESS if status == 410 else Result.CONTENT


def read_retry_after(text: str | None) -> int:
    """Retry-After in seconds, as milliseconds; a date or nonsense is 0."""
    return int(text) * 1_000 if text is not None and text.isascii() and text.isdigit() and len(text) <= 9 else 0
