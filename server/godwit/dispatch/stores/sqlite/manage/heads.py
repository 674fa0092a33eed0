"""Heads of many inboxes in one read, for the announcer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ....model import Head


def read_heads(connection: sqlite3.Connection, owners: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Head]:
    """The heads of receivers (tenant, name); one that does not exist has none."""
    names: dict[str, list[str]] = {}
    for tenant, name in owners:
        names.setdefault(tenant, []).append(name)
    heads = {}
    for tenant, some in names.items():
        marks = ",".join("?" * len(some))
        rows = connection.execute(
            "SELECT name, head.epoch, seq, unread, unseen FROM receiver JOIN head USING (rid) "
            f"WHERE tenant = ? AND name IN ({marks})",
            (tenant, *some),
        )
        heads.update({(tenant, name): Head(*row) for name, *row in rows})
    return heads
