"""The ids of deliveries, which receivers of webhooks drop repeats by.

Pure. Numbers begin again in each database, also in one that was restored from a copy; with the time of acceptance an id is
that of one delivery for good.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ID = re.compile(r"dlv_(\d{1,18})_(\d{1,18})_(-?\d{1,18})_(\d{1,18})")


class DeliveryId(NamedTuple):
    """The numbers of notification, receiver and address, and when the notification was accepted (Unix ms)."""

    nid: int
    rid: int
    aid: int
    accepted_ms: int

    def __str__(self) -> str:
        return f"dlv_{self.nid}_{self.rid}_{self.aid}_{self.accepted_ms}"


def parse_delivery_id(text: str) -> DeliveryId | None:
    """The numbers of an id; None if the text is not an id."""
    parts = _ID.fullmatch(text)
    return None if parts is None else DeliveryId(*(int(part) for part in parts.groups()))
