"""The bronze tables: the journals' streams as they were written, row for row, and the rows that could not be taken."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from ..schemas import SCHEMAS
from .table import Table

_ABOUT = {
    "messages": "Every persistent message that was accepted, as recorded by its node.",
    "access": "Connections, refusals, subscriptions, and their ends.",
    "deliveries": "What was passed to the kernel for whom, as ranges of positions.",
    "latency": "Histograms of the time from acceptance to the kernel.",
    "stats": "The metrics of each node.",
    "runs": "The runs of each node: when they began, which run they follow, what they lost.",
    "feedback": "The result of each delivery of a notification, as recorded by dispatch.",
}
_PERSONS = {
    "messages": ("publisher",),
    "access": ("identity", "client", "address"),
    "deliveries": ("identity", "client"),
    "feedback": ("receiver",),
}


def _field(name: str, kind: LongType | StringType | TimestampType, about: str, *, null: bool = False) -> StructField:
    return StructField(name, kind, null, {"comment": about})


QUARANTINE = Table(
    name="bronze.quarantine",
    about=(
        "Damaged rows of the journals, and invalid records of Kafka: their position, the fault, and the remaining data."
    ),
    columns=StructType(
        [
            _field("stream", StringType(), "The stream that the row belongs to."),
            _field("node", StringType(), "The node of the journal."),
            _field(
                "run",
                StringType(),
                "The node's run that wrote it, derived from the rows around it; null if unknown.",
                null=True,
            ),
            _field("journal_offset", LongType(), "The row's offset; for lost rows, the first of them."),
            _field("time", TimestampType(), "The row's time, or one nearby."),
            _field("fault", StringType(), "The fault."),
            _field("row", StringType(), "The row as it was read, as JSON; binary fields in base64."),
            _field("next", LongType(), "The offset after it, or after the last of the lost rows.", null=True),
            _field(
                "bytes",
                LongType(),
                "Bytes of the file in place of lost rows; null for one row or if unknown.",
                null=True,
            ),
        ]
    ),
    key=("stream", "node", "run", "journal_offset"),
    job="land",
    day="time",
    texts=("row",),
)

BRONZE = (
    *(
        Table(
            name=f"bronze.{stream}",
            about=_ABOUT[stream],
            columns=columns,
            key=("node", "run", "journal_offset"),
            job="land",
            day="time",
            fresh_s=30,
            persons=_PERSONS.get(stream, ()),
        )
        for stream, columns in SCHEMAS.items()
    ),
    QUARANTINE,
)
