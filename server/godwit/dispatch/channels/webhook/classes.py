"""The meaning of an HTTP answer for a webhook's delivery. Pure."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from ...model import Result


def classify(status: int, *, asks_to_wait: bool = False) -> Result:
    """The class of an HTTP status; `asks_to_wait`: the answer had Retry-After."""
    if 200 <= status <= 299:
        return Result.OK
    if status == 429 or (status == 503 and asks_to_wait):
        return Result.THROTTLED
    if status in (408, 425) or status >= 500:
        return Result.TEMPORARY
    return Result.ADDRESS if status == 410 else Result.CONTENT


def read_retry_after(text: str | None, now_ms: int) -> int:
    """Retry-After as milliseconds from now: seconds, or an HTTP date. 0 for anything else, and for a date in the past."""
    if text is None or not text.isascii():
        return 0
    if text.isdigit():
        return int(text) * 1_000 if len(text) <= 9 else 0
    try:
        date = parsedate_to_datetime(text)
        return max(0, int(date.replace(tzinfo=date.tzinfo or UTC).timestamp() * 1_000) - now_ms)
    except (ValueError, OverflowError):  # a number of any length is an OverflowError
        return 0
