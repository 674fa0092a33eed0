"""Many values as few: for each window of each subject its first, highest, lowest and last, and how many there were."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .repeats import drop_repeats

LATENESS = "10 seconds"


def bars(
    messages: DataFrame,
    width: str = "1 second",
    field: str = "$",
    lateness: str = LATENESS,
    *,
    may_repeat: bool = True,
) -> DataFrame:
    """A row for each window and subject. `field` is the JSON path of the number in the content (`$`: the content
    itself); what has no number there does not count. First and last are by arrival, which is the order on the node.
    `may_repeat`: whether the same row may come twice; to find that out, a stream remembers every row for `lateness`.
    """
    text = "cast(content as string)"
    number = f"coalesce(try_cast(get_json_object({text}, '{_quoted(field)}') as double), try_cast({text} as double))"
    number = number if field == "$" else f"try_cast(get_json_object({text}, '{_quoted(field)}') as double)"
    known = messages.filter("kind != 'bytes'")
    if may_repeat:
        known = drop_repeats(known, lateness)
    elif known.isStreaming:
        known = known.withWatermark("time", lateness)
    values = known.selectExpr("node", "subject", "time", f"{number} as value", "struct(time, arrival) as place")
    counted = values.filter("value is not null and not isnan(value)").groupBy(
        F.window("time", width), "node", "subject"
    )
    sums = counted.agg(
        F.min_by("value", "place").alias("open"),
        F.max("value").alias("high"),
        F.min("value").alias("low"),
        F.max_by("value", "place").alias("close"),
        F.count("*").alias("count"),
    )
    return sums.select(
        F.col("window.start").alias("start"), F.col("window.end").alias("end"), *("node", "subject"), *_VALUES
    )


_VALUES = ("open", "high", "low", "close", "count")


def bar_messages(rows: DataFrame, prefix: str = "/bars/1s") -> DataFrame:
    """Bars as messages to publish: one subject for each, below `prefix`. A bar that has grown is another message;
    the same bar again is the same one, by its key.
    """
    content = F.to_json(F.struct(F.unix_millis("start").alias("time"), F.unix_millis("end").alias("until"), *_VALUES))
    key = F.concat_ws("|", "node", "subject", F.unix_millis("start"), "count")
    return rows.select(
        F.concat(F.lit(prefix), "subject").alias("subject"),
        content.alias("content"),
        F.lit("json").alias("kind"),
        F.sha2(key, 256).alias("key"),
    )


def _quoted(field: str) -> str:
    return field.replace("\\", "\\\\").replace("'", "\\'")
