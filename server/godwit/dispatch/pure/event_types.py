"""The types of events, by which the feed and event webhooks are filtered. Pure."""

from __future__ import annotations

from ..model import State

MARKS = ("seen", "read", "unread", "archived", "unarchived", "confirmed")
EVENT_TYPES = (
    *(f"delivery.{state.label}" for state in State if state not in (State.QUEUED, State.SENDING)),
    "delivery.complained",
    *(f"item.{mark}" for mark in MARKS),
    "notification.paused",
    "notification.resumed",
    "receiver.connected",
    "receiver.disconnected",
    "webhook.disabled",
)
"""An event of another type never occurs, so a filter that names one would select nothing."""
