"""The bronze tables: the journals' streams as they were written, row for row, and the rows that could not be taken."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from ..schemas import SCHEMAS
from .table import Table

_ABOUT = {
    "messages": "Every guaranteed message that was accepted, as its node wrote it down.",
    "access": "Who came, what they asked to hear, and how they left.",
    "deliveries": "What was handed to the kernel for whom, as ranges of positions.",
    "latency": "How long messages took from acceptance until the kernel had them, as histograms.",
    "stats": "The metrics of each node.",
    "runs": "What each node knows of its own runs: when they began, what they follow, what they lost.",
    "feedback": "What became of messages on their way to recipients outside of a node. No node writes it yet.",
}
_PERSONS = {
    "messages": ("publisher",),
    "access": ("identity", "client", "address"),
    "deliveries": ("identity", "client"),
    "feedback": ("recipient",),
}


def _field(name: str, kind: LongType | StringType | TimestampType, about: str, *, null: bool = False) -> StructField:
    return StructField(name, kind, null, {"comment": about})


QUARANTINE = Table(
    name="bronze.quarantine",
    about=(
        "Rows of the journals that are damaged, and records of Kafka that make no message: where they stood, what is wrong, "
        "and what was left of them."
    ),
    columns=StructType(
        [
            _field("stream", StringType(), "The stream that the row belongs to."),
            _field("node", StringType(), "The node whose journal it is."),
            _field(
                "run",
                StringType(),
                "The node's run that wrote it, as the rows around it tell; null where none does.",
                null=True,
            ),
            _field(
                "journal_offset", LongType(), "The row's offset; of lost rows, which one row stands for, the first."
            ),
            _field("time", TimestampType(), "The row's time, or one nearby."),
            _field("fault", StringType(), "What is wrong with it."),
            _field("row", StringType(), "The row as it was read, as JSON; binary fields in base64."),
            _field("next", LongType(), "The offset after it, or after the last of the lost rows.", null=True),
            _field(
                "bytes", LongType(), "Bytes of the file in place of lost rows; null for one row, or unknown.", null=True
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
