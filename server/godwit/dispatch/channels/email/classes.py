"""What a relay's answer means for an e-mail's delivery. Pure."""

from __future__ import annotations

import re

from ...model import Result

GREYLIST_MS = 300_000
"""The least wait after a temporary refusal: a greylisting server wants to see a sender come back minutes later."""
_ENHANCED = re.compile(r"\A([245])\.(\d{1,3})\.(\d{1,3})\b")


def classify(code: int, text: str) -> Result:
    """The class of an SMTP answer, by its code and its enhanced code (RFC 3463)."""
    if 200 <= code <= 399:
        return Result.OK
    if 400 <= code <= 499:
        return Result.TEMPORARY
    enhanced = _ENHANCED.match(text.strip())
    is_address = enhanced is not None and enhanced[1] == "5" and enhanced[2] == "1"
    return Result.ADDRESS if is_address else Result.CONTENT
