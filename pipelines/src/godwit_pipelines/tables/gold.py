"""The gold tables: answers to what operators ask. The audit's are in proof.py."""

from __future__ import annotations

from .columns import BINARY, DOUBLE, INT, LONG, LONGS, NODE, OFFSETS, TENANT, TEXT, TIME, column, table_of_columns
from .proof import PROOF
from .table import Table

WIDTHS = {"10s": "10 seconds", "1m": "1 minute", "1h": "1 hour", "1d": "1 day"}


def _delivery(name: str, width: str, fresh_s: int) -> Table:
    return Table(
        name=f"gold.delivery_{name}",
        about=f"Deliveries by selector: how many, how fast and to how many subscribers, in windows of {width}.",
        columns=table_of_columns(
            column("window_start", TIME, f"The window's beginning; it is {width} long."),
            NODE,
            TENANT,
            column("selector", TEXT, "The subject or pattern."),
            column("messages", LONG, "Messages passed to the kernel."),
            column("bytes", LONG, "Bytes of their frames."),
            column("conflated", LONG, "Messages merged into others."),
            column("gaps", LONG, "Gaps that clients received."),
            column("missed", LONG, "Messages that these gaps report as missed, if counted."),
            column("timed", LONG, "Deliveries that were timed."),
            column(
                "buckets",
                LONGS,
                "Histogram of the time from acceptance to the kernel: below 1 us, then up to 2^i us. Histograms can be added.",
            ),
            column(
                "connections",
                BINARY,
                "HyperLogLog sketch of the connections: hll_union_agg merges, hll_sketch_estimate counts.",
            ),
        ),
        key=("window_start", "node", "tenant", "selector"),
        job="delivery",
        day="window_start",
        fresh_s=fresh_s,
    )


SLO = Table(
    name="gold.slo",
    about="Burn rate of each tenant's error budget by minute: at 1 it is used up exactly.",
    columns=table_of_columns(
        column("minute", TIME, "The minute."),
        TENANT,
        column(
            "good",
            LONG,
            "Deliveries that were fast enough, estimated from the timed deliveries of their selector.",
        ),
        column("total", LONG, "Deliveries and messages reported as missed."),
        column("burn_5m", DOUBLE, "Burn rate over five minutes."),
        column("burn_1h", DOUBLE, "Burn rate over an hour."),
        column("burn_6h", DOUBLE, "Burn rate over six hours."),
    ),
    key=("minute", "tenant"),
    job="delivery",
    day="minute",
)
CONCURRENCY = Table(
    name="gold.concurrency_1m",
    about="Concurrent connections by minute, for minutes in which they changed.",
    columns=table_of_columns(
        column("minute", TIME, "The minute."),
        NODE,
        TENANT,
        column("peak", LONG, "The highest number at once."),
        column("at_end", LONG, "The number at its end, and until the next row."),
        column("connects", LONG, "Connections that began."),
        column("disconnects", LONG, "Connections that ended."),
        column(
            "reconnects",
            LONG,
            "Connections that began within 30 s of the last of the same client, identity and authority.",
        ),
    ),
    key=("minute", "node", "tenant"),
    job="sessions",
    day="minute",
)
USAGE = Table(
    name="gold.usage_1h",
    about="Usage by tenant and hour. The sums equal those of the bronze tables, except for late rows, which the job reports.",
    columns=table_of_columns(
        column("hour", TIME, "The hour."),
        TENANT,
        column("in_messages", LONG, "Messages accepted."),
        column("in_bytes", LONG, "Bytes of their contents."),
        column("out_messages", LONG, "Messages passed to the kernel."),
        column("out_bytes", LONG, "Bytes of their frames."),
        column("connects", LONG, "Connections that began."),
        column("refusals", LONG, "Connections that were refused."),
    ),
    key=("hour", "tenant"),
    job="usage",
    day="hour",
)
BARS = Table(
    name="gold.ohlc",
    about="First, highest, lowest and last value of each subject and window.",
    columns=table_of_columns(
        column("window_start", TIME, "The window's beginning."),
        column("window_end", TIME, "Its end."),
        NODE,
        column("subject", TEXT, "The subject."),
        column("open", DOUBLE, "The first value."),
        column("high", DOUBLE, "The highest."),
        column("low", DOUBLE, "The lowest."),
        column("close", DOUBLE, "The last."),
        column("count", LONG, "The number of values."),
        column(
            "to_offsets",
            OFFSETS,
            "For each run of the node the journal offset of its last value: later rows of the run are counted.",
        ),
    ),
    key=("window_start", "window_end", "node", "subject"),
    job="ohlc",
    day="window_start",
    fresh_s=30,
)
_MEASURES = (("connections", "connections"), ("delivered", "deliveries a second"), ("cpu", "cores"))
CAPACITY = Table(
    name="gold.capacity",
    about="Cost of connections and deliveries on a node, fitted to its statistics by least squares.",
    columns=table_of_columns(
        NODE,
        column("minutes", LONG, "Minutes that were fitted."),
        column(
            "bytes_per_connection",
            DOUBLE,
            "Memory of one more connection; null if their number never changed.",
            null=True,
        ),
        column("memory_base_bytes", DOUBLE, "Memory without connections.", null=True),
        column("memory_fit", DOUBLE, "r squared of that.", null=True),
        column("cpu_us_per_delivery", DOUBLE, "Processor time of one more delivery, microseconds.", null=True),
        column("cpu_base", DOUBLE, "Cores used without deliveries.", null=True),
        column("cpu_fit", DOUBLE, "r squared of that.", null=True),
        *(column(f"{name}_max", DOUBLE, f"The most {what} in a minute.", null=True) for name, what in _MEASURES),
        column("memory_bytes_max", DOUBLE, "The most memory in a minute.", null=True),
    ),
    key=("node",),
    job="capacity",
    fresh_s=3_600,
)
FORECAST = Table(
    name="gold.forecast",
    about="Mean and maximum load for each hour of the week.",
    columns=table_of_columns(
        NODE,
        column("hour_of_week", INT, "0 to 167; 0 is Monday at 0 h UTC."),
        column("weeks", LONG, "Number of weeks with data."),
        *(column(name, DOUBLE, f"Mean {what}.", null=True) for name, what in _MEASURES),
        *(column(f"{name}_max", DOUBLE, f"The most {what}.", null=True) for name, what in _MEASURES),
    ),
    key=("node", "hour_of_week"),
    job="capacity",
    fresh_s=3_600,
)
GOLD = (
    *PROOF,
    *(_delivery(name, width, fresh) for (name, width), fresh in zip(WIDTHS.items(), (30, 60, 60, 60), strict=True)),
    *(SLO, CONCURRENCY, USAGE, BARS, CAPACITY, FORECAST),
)
