"""The audit's tables: what was published against what was handed over."""

from __future__ import annotations

from .columns import AUTHORITY, BOOL, LONG, NODE, TENANT, TEXT, TIME, column, table_of_columns
from .table import Table

_WHO = (
    column("run", TEXT, "The node's run."),
    column("connection", LONG, "The connection; below 0 the group of a shared subscription."),
    column("selector", TEXT, "The subject or pattern."),
    column(
        "chain",
        LONG,
        "The number of the connection's subscription to the selector, from 0. After rows that never landed it continues as the next.",
    ),
)
_PERSON = (
    column("identity", TEXT, "The identity; empty if there is none."),
    AUTHORITY,
    column("client", TEXT, "The client's own name."),
    column("is_pattern", BOOL, "Whether the selector is a pattern. Its places are then arrivals."),
)
_ERASED = column(
    "erased",
    LONG,
    "Highest number of erased or never landed messages that may be concerned, or that rows of deliveries which never landed may have "
    "delivered; counted for each range.",
    null=True,
)
RANGES = Table(
    name="gold.audit_ranges",
    about="Each subscription by run: the positions it was served, and whether all of it is in order.",
    columns=table_of_columns(
        NODE,
        *_WHO,
        column("island", LONG, "The part of the subscription: a new one begins when the epoch or the run changes."),
        TENANT,
        *_PERSON,
        column("epoch", LONG, "The epoch of a subject's places; null for a pattern.", null=True),
        column("from_place", LONG, "The first position: a sequence, or for a pattern an arrival."),
        column("to_place", LONG, "The last position, inclusive."),
        column("first_time", TIME, "Time of its first range."),
        column("last_time", TIME, "Time of its last range."),
        column("ranges", LONG, "Number of its rows of deliveries."),
        column("messages", LONG, "Messages delivered."),
        column("conflated", LONG, "Messages merged into others."),
        column("gaps", LONG, "Gaps that the client received."),
        column("declared", LONG, "Missing messages that were reported to the client or that the journal excuses."),
        column("faults", LONG, "Undeclared faults."),
        _ERASED,
        column("in_order", BOOL, "No undeclared fault."),
    ),
    key=("node", "run", "connection", "selector", "chain", "island"),
    job="audit",
    day="first_time",
    fresh_s=900,
    persons=("identity", "client"),
)
FAULTS = Table(
    name="gold.audit_faults",
    about="Everything that is not the next message: reported and unreported gaps, repeats, reorders, holes, returns to an earlier epoch.",
    columns=table_of_columns(
        NODE,
        *_WHO,
        column("island", LONG, "The part of the subscription."),
        column("journal_offset", LONG, "The row of deliveries that shows it."),
        TENANT,
        *_PERSON,
        column("time", TIME, "Time of that row."),
        column("epoch", LONG, "The epoch of a subject's places; null for a pattern.", null=True),
        column(
            "place_before",
            LONG,
            "The position that the subscription had reached before the row; null if none.",
            null=True,
        ),
        column("from_place", LONG, "The row's first position."),
        column("to_place", LONG, "The row's last position."),
        column("kind", TEXT, "gap, hole, repeat, reorder, epoch_regress, miscount or unpublished."),
        column("messages", LONG, "Number of messages concerned."),
        column("declared", BOOL, "Whether it was reported to the client or the journal excuses it."),
        column(
            "cause",
            TEXT,
            "Why it is declared: reported (to the client by a gap) or the journal's reason; empty if it is not.",
        ),
    ),
    key=("node", "run", "connection", "selector", "chain", "island", "journal_offset", "kind", "declared"),
    job="audit",
    day="time",
    fresh_s=900,
    persons=("identity", "client"),
)
VERDICT = Table(
    name="gold.audit_verdict",
    about="The verdict for each hour of each selector.",
    columns=table_of_columns(
        column("hour", TIME, "The hour."),
        NODE,
        TENANT,
        column("selector", TEXT, "The subject or pattern."),
        column("is_pattern", BOOL, "Whether it is a pattern."),
        column("ranges", LONG, "Rows of deliveries that were judged."),
        column("messages", LONG, "Messages delivered."),
        column("conflated", LONG, "Messages merged into others."),
        column("subscriptions", LONG, "Approximate number of subscriptions served."),
        column("gaps", LONG, "Messages missing between ranges and not reported."),
        column("holes", LONG, "Messages missing inside a range and not reported."),
        column("repeats", LONG, "Messages delivered again."),
        column("reorders", LONG, "Messages delivered after later ones."),
        column("regressions", LONG, "Returns to an earlier epoch."),
        column("others", LONG, "Gaps with a wrong count, and positions beyond everything published."),
        column("reported", LONG, "Messages missing and reported."),
        column(
            "excused",
            LONG,
            "Messages of faults that the journal excuses because it lost rows of deliveries or access.",
            null=True,
        ),
        column("faults", LONG, "Undeclared faults."),
        _ERASED,
        column(
            "verdict",
            TEXT,
            "proven (all of it, in order, once), reported (missing messages were reported, or the journal excuses them), unproven "
            "(erased or never landed messages may be concerned, and there is no other fault) or broken.",
        ),
    ),
    key=("hour", "node", "tenant", "selector", "is_pattern"),
    job="audit",
    day="hour",
    fresh_s=900,
)
PROOF = (RANGES, FAULTS, VERDICT)
