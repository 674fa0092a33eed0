"""The meaning of a relay's answer for an e-mail's delivery. Pure."""

from __future__ import annotations

import re

from ...model import Result
from ..outcomes import keep_utf8

GREYLIST_MS = 300_000
"""The shortest wait after a temporary refusal: a greylisting server accepts a sender only some minutes later."""
SLOW_MS = 30_000
"""How long to send nothing to a host that accepts no more e-mails now: SMTP has no Retry-After."""
_ENHANCED = re.compile(r"\A([245])\.(\d{1,3})\.(\d{1,3})\b")
ADDRESS_GONE = frozenset({"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"})
"""Bad mailbox, domain or syntax, moved, no mail, disabled. 5.1.7 and 5.1.8 are about the sender's address, 5.1.0 about either."""
_ADDRESS = re.compile(r'"[^"\s]*"@[^\s<>()\[\]{},;"]*|[^\s<>()\[\]{},;"]*@[^\s<>()\[\]{},;"]*')
_CLEANED_MAX = 1_000
_TOO_MANY = re.compile(
    r"\b4\.7\.28\b|\btoo (?:many|much|fast|frequent)|\brate[ -]?limit|\bthrottl|\bslow(?:ing)? down", re.IGNORECASE
)
"""The ways in which servers report too many e-mails or connections: SMTP has no code of its own for it."""


def classify(code: int, text: str) -> Result:
    """The class of an SMTP answer, by its code and its enhanced code (RFC 3463)."""
    if 200 <= code <= 399:
        return Result.OK
    if 400 <= code <= 499:
        return Result.THROTTLED if _TOO_MANY.search(text) else Result.TEMPORARY
    enhanced = _ENHANCED.match(text.strip())
    return Result.ADDRESS if enhanced is not None and is_address_gone(enhanced[0]) else Result.CONTENT


def is_address_gone(status: str) -> bool:
    """Whether an enhanced code says that the recipient's address is permanently invalid."""
    return status in ADDRESS_GONE


def hide_addresses(text: str) -> str:
    """A mail server's answer on one line, without anything like an address, because it is kept longer than the address may be."""
    return _ADDRESS.sub("(address)", " ".join(keep_utf8(text[:_CLEANED_MAX]).split()))
