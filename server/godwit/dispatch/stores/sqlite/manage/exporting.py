"""Everything that the embedded store has about one receiver, for the receiver: without secrets, and with the inbox."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from ....pure.items import show_item
from ..inbox import fetch_after
from ..receivers import find_receiver, read_preferences, read_receiver
from . import presence
from .wishes import list_suppressions

ITEMS_MAX = 100_000
"""A number larger than any inbox."""


def export_receiver(connection: sqlite3.Connection, tenant: str, name: str) -> dict[str, Any] | None:
    """Attributes, preferences, addresses with their suppressions, groups, and inbox; None: no such receiver."""
    found, rid = read_receiver(connection, tenant, name), find_receiver(connection, tenant, name)
    if found is None or rid is None:
        return None
    row, addresses = found
    groups = connection.execute(
        "SELECT DISTINCT receiver_group.name FROM subscription JOIN receiver_group USING (gid, version) WHERE rid = ? ORDER BY 1",
        (rid,),
    )
    _, seen_ms = presence.read(connection, tenant, name)
    fetched = fetch_after(connection, tenant, name, 0, ITEMS_MAX)
    columns = ("category", "reason", "since_ms")
    return {
        "id": name,
        **msgspec.json.decode(row.attributes),
        "preferences": msgspec.json.decode(read_preferences(connection, tenant, name) or b"{}"),
        "last_seen_ms": seen_ms,
        "addresses": [
            {
                "id": one.name,
                "channel": one.channel,
                "value": one.value,
                "state": one.state,
                "suppressions": [
                    dict(zip(columns, listed, strict=True))
                    for listed in list_suppressions(connection, tenant, one.channel, one.value)
                ],
            }
            for one in addresses
        ],
        "groups": [group for (group,) in groups],
        "inbox": [] if fetched is None else [show_item(item) for item in fetched.items],
    }
