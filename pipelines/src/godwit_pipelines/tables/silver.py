"""The silver tables: rows of the journals put together into things."""

from __future__ import annotations

from .columns import BOOL, INT, LONG, NODE, TEXT, TIME, column, table_of_columns
from .table import Table

SESSIONS = Table(
    name="silver.sessions",
    about="Every connection: who it was, from when to when, and how it ended.",
    columns=table_of_columns(
        NODE,
        column("run", TEXT, "The node's run."),
        column("connection", LONG, "The connection, unique in the run."),
        column("tenant", TEXT, "The identity's tenant.", null=True),
        column("identity", TEXT, "Who it is; null: nobody in particular.", null=True),
        column("client", TEXT, "The name that the client gave itself.", null=True),
        column("address", TEXT, "Where it came from, HOST:PORT.", null=True),
        column("protocol", TEXT, "What it spoke.", null=True),
        column("started", TIME, "When it came; where that row is missing, when it was first seen."),
        column("ended", TIME, "When it went; null while it is open.", null=True),
        column("first_seen", TIME, "The first of its rows."),
        column("last_seen", TIME, "The last of its rows."),
        column("code", INT, "The code that it was closed with.", null=True),
        column("reason", TEXT, "What was said beside the code.", null=True),
        column("duration_ms", LONG, "How long it lived, by the node's own measure.", null=True),
        column("resumed", BOOL, "Whether a subscription of it went on from a place it named."),
        column("end_state", TEXT, "open, closed, or lost with its node: its run ended and nobody told of it."),
    ),
    key=("node", "run", "connection"),
    job="sessions",
    fresh_s=60,
    persons=("identity", "client", "address"),
)
SILVER = (SESSIONS,)
