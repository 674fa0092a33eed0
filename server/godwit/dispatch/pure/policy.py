"""Decides about a delivery before anything is sent: whether it is sent, now or later, and why not.

Pure. The decision is the same for a page, for a deferred delivery that is due, and for the next step of a policy.
"""

from __future__ import annotations

from datetime import datetime

from ..model import Options, Profile, State, Verdict
from .quiet import find_zone, local_ms, quiet_until_ms

_SPREAD = 2_654_435_761
"""Spreads neighbouring numbers over the stagger."""


def decide(
    options: Options,
    profile: Profile,
    channel: str,
    *,
    rid: int,
    now_ms: int,
    expires_ms: int,
    is_required: bool = False,
    suppression: str = "",
    is_sandbox: bool = False,
) -> Verdict:
    """The verdict on one delivery. `suppression` is the reason for which its address receives nothing, if there is one."""
    if now_ms >= expires_ms:
        return Verdict(State.EXPIRED)
    if suppression:
        return Verdict(State.SUPPRESSED, reason=suppression)
    if options.is_test and not is_sandbox:
        return Verdict(State.SUPPRESSED, reason="test_key")
    if not is_required and is_opted_out(profile, options.category, channel):
        return Verdict(State.SUPPRESSED, reason="preference")
    due_ms, reason = now_ms, ""
    zone = find_zone(profile.zone) or find_zone("")
    if options.local and zone is not None:
        due_ms = max(now_ms, local_ms(datetime.fromisoformat(options.local), zone))
        reason = "local_time" if due_ms > now_ms else ""
    if profile.quiet is not None and channel != "inbox" and not options.critical and zone is not None:
        until_ms = quiet_until_ms(due_ms, zone, *profile.quiet, rid * _SPREAD)
        if until_ms is not None:
            due_ms, reason = until_ms, "quiet_hours"
    if due_ms <= now_ms:
        return Verdict()
    return Verdict(State.EXPIRED, reason=reason) if due_ms >= expires_ms else Verdict(State.DEFERRED, due_ms, reason)


def is_opted_out(profile: Profile, category: str, channel: str) -> bool:
    """Whether a receiver opted out of a category on a channel."""
    if not profile.opted_out:
        return False
    return any(f"{one}/{other}" in profile.opted_out for one in (category or "*", "*") for other in (channel, "*"))
