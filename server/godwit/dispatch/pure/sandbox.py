"""Sandbox addresses: nothing is sent to them, and their name decides the result. Test keys reach only them.

Pure. Webhooks: `https://RESULT.sandbox.invalid/…`; e-mail: `RESULT@sandbox.invalid`; inboxes: receivers named `sandbox:…`. RESULT is
`ok`, `temporary`, `doubt`, `address` or `content`.
"""

from __future__ import annotations

import re

from ..model import Result

_WEBHOOK = re.compile(r"https://([a-z]+)\.sandbox\.invalid(/.*)?")
_EMAIL = re.compile(r"([a-z]+)@sandbox\.invalid")


def is_sandbox(channel: str, value: str) -> bool:
    """Whether an address, or for an inbox the receiver, is in the sandbox."""
    return value.startswith("sandbox:") if channel == "inbox" else read_result(channel, value) is not None


def read_result(channel: str, value: str) -> Result | None:
    """The result of a sandbox address; None for any other address."""
    found = {"webhook": _WEBHOOK, "email": _EMAIL}[channel].fullmatch(value)
    return Result(found[1]) if found is not None and found[1] in list(Result) else None
