"""The silver tables: rows of the journals put together into things."""

from __future__ import annotations

from .columns import AUTHORITY, BOOL, INT, LONG, NODE, TEXT, TIME, column, table_of_columns
from .table import Table

SESSIONS = Table(
    name="silver.sessions",
    about="Every connection: its identity, when it began, and when and how it ended.",
    columns=table_of_columns(
        NODE,
        column("run", TEXT, "The node's run."),
        column("connection", LONG, "The connection, unique in the run."),
        column("tenant", TEXT, "The identity's tenant.", null=True),
        column("identity", TEXT, "The identity; null if there is none.", null=True),
        AUTHORITY,
        column("client", TEXT, "The client's own name.", null=True),
        column("address", TEXT, "The remote address, HOST:PORT.", null=True),
        column("protocol", TEXT, "The protocol.", null=True),
        column("started", TIME, "When it began; if that row is missing, when it was first seen."),
        column("ended", TIME, "When it ended; null while it is open.", null=True),
        column("first_seen", TIME, "Time of its first row."),
        column("last_seen", TIME, "Time of its last row."),
        column("code", INT, "The code that it was closed with.", null=True),
        column("reason", TEXT, "The reason given with the code.", null=True),
        column("duration_ms", LONG, "Its duration as measured by the node.", null=True),
        column("resumed", BOOL, "Whether one of its subscriptions resumed from a position."),
        column("end_state", TEXT, "open, closed, or lost: its node's run ended without a record of its end."),
    ),
    key=("node", "run", "connection"),
    job="sessions",
    fresh_s=60,
    persons=("identity", "client", "address"),
)
SILVER = (SESSIONS,)
