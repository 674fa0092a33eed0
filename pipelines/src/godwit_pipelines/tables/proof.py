"""The audit's tables: what was published against what was handed over."""

from __future__ import annotations

from .columns import BOOL, LONG, NODE, TENANT, TEXT, TIME, column, table_of_columns
from .table import Table

_WHO = (
    column("run", TEXT, "The node's run."),
    column("connection", LONG, "The connection; below 0 the group of a shared subscription."),
    column("selector", TEXT, "The subject or pattern."),
    column(
        "chain",
        LONG,
        "Which subscription of the connection to the selector, from 0; one of which rows never landed goes on as the next.",
    ),
)
_PERSON = (
    column("identity", TEXT, "Who it is; empty: nobody in particular."),
    column("client", TEXT, "The name that the client gave itself."),
    column("is_pattern", BOOL, "Whether the selector is a pattern, whose places are arrivals."),
)
_ERASED = column(
    "erased",
    LONG,
    "Messages that it may be about and that were erased or never landed, at most, or that may have been handed over by rows of deliveries "
    "that never landed; counted for each of its ranges.",
    null=True,
)
RANGES = Table(
    name="gold.audit_ranges",
    about="Each subscription, run by run: from which place to which it was served, and whether all of it is in order.",
    columns=table_of_columns(
        NODE,
        *_WHO,
        column(
            "island", LONG, "Which stretch of the subscription: another begins where the epoch, or the run, changes."
        ),
        TENANT,
        *_PERSON,
        column("epoch", LONG, "The epoch of a subject's places; null for a pattern.", null=True),
        column("from_place", LONG, "The first place: a sequence, or for a pattern an arrival."),
        column("to_place", LONG, "The last place, inclusive."),
        column("first_time", TIME, "When its first range was written down."),
        column("last_time", TIME, "When its last was."),
        column("ranges", LONG, "Rows of deliveries that it is made of."),
        column("messages", LONG, "Messages handed over."),
        column("conflated", LONG, "Messages merged into others."),
        column("gaps", LONG, "Gaps that the client was told of."),
        column("declared", LONG, "Messages that it was told to have missed, or that the journal excuses."),
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
    about="Everything that is not simply the next message: gaps told and untold, repeats, reorders, holes, epochs that came back.",
    columns=table_of_columns(
        NODE,
        *_WHO,
        column("island", LONG, "Which stretch of the subscription."),
        column("journal_offset", LONG, "The row of deliveries at which it shows."),
        TENANT,
        *_PERSON,
        column("time", TIME, "When that row was written down."),
        column("epoch", LONG, "The epoch of a subject's places; null for a pattern.", null=True),
        column("place_before", LONG, "The place the subscription had reached before the row; null: none.", null=True),
        column("from_place", LONG, "The row's first place."),
        column("to_place", LONG, "The row's last place."),
        column("kind", TEXT, "gap, hole, repeat, reorder, epoch_regress, miscount or unpublished."),
        column("messages", LONG, "How many messages it is about."),
        column("declared", BOOL, "Whether the client was told, or the journal excuses it."),
        column("cause", TEXT, "By what it is declared: told, or what the journal says; empty where it is not."),
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
        column("messages", LONG, "Messages handed over."),
        column("conflated", LONG, "Messages merged into others."),
        column("subscriptions", LONG, "Subscriptions that were served, about."),
        column("gaps", LONG, "Messages that are missing and were not told."),
        column("holes", LONG, "Messages that are missing inside a range and were not told."),
        column("repeats", LONG, "Messages that came again."),
        column("reorders", LONG, "Messages that came after later ones."),
        column("regressions", LONG, "Times an epoch came back."),
        column("others", LONG, "Gaps counted wrong, and places beyond all that was published."),
        column("told", LONG, "Messages that are missing and were told."),
        column(
            "excused",
            LONG,
            "Messages of faults that the journal excuses: it lost rows of deliveries or access there.",
            null=True,
        ),
        column("faults", LONG, "Undeclared faults."),
        _ERASED,
        column(
            "verdict",
            TEXT,
            "proven (all of it, in order, once), told (what is missing was told, or the journal excuses it), unproven (what it "
            "may be about was erased or never landed, and beside that nothing is wrong) or broken.",
        ),
    ),
    key=("hour", "node", "tenant", "selector", "is_pattern"),
    job="audit",
    day="hour",
    fresh_s=900,
)
PROOF = (RANGES, FAULTS, VERDICT)
