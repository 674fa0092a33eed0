"""Many values as few: for each window of each subject its first, highest, lowest and last, and how many there were.

Either as a stream that remembers the windows of a short while (`ohlc`), or batch by batch, where what is remembered are the bars
themselves (`add_bars`): then nothing is ever late.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..values.numbers import NUMBER
from .repeats import drop_repeats, timed

LATENESS = "10 seconds"
KEY = ("window_start", "window_end", "node", "subject")
_WINDOW = ("window.start as window_start", "window.end as window_end")


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
    if may_repeat:
        messages = drop_repeats(messages, lateness)
    elif messages.isStreaming:
        messages = timed(messages, lateness)
    values = _numbers(messages, field).withColumn("place", F.expr("struct(time, arrival)"))
    sums = values.groupBy(F.window("time", width), "node", "subject").agg(
        F.min_by("value", "place").alias("open"),
        F.max("value").alias("high"),
        F.min("value").alias("low"),
        F.max_by("value", "place").alias("close"),
        F.count("*").alias("count"),
    )
    return sums.selectExpr(*_WINDOW, "node", "subject", *_VALUES)


def values(messages: DataFrame, width: str = "1 second", field: str = "$") -> DataFrame:
    """The numbers in a batch's messages, each with its window: what `add_bars` takes."""
    windowed = _numbers(messages, field).withColumn("window", F.window("time", width))
    return windowed.selectExpr(*_WINDOW, "node", "subject", "run", "journal_offset", "time", "value")


def add_bars(values: DataFrame, known: DataFrame) -> DataFrame:
    """The bars that these values change, `known` ones among them. A bar says up to which offset of each run of its node it has counted
    (`to_offsets`), and counts later ones only: a batch that is done again changes nothing. A node's values may come in any
    number of batches, however late, but each run's in the order of its journal; within a batch each comes once.
    """
    before = known.filter("to_offsets is not null").select(
        *KEY, *(F.col(name).alias(f"known_{name}") for name in (*_VALUES, "to_offsets"))
    )
    is_new = "known_to_offsets is null or journal_offset > coalesce(known_to_offsets[run], -1)"
    of_runs = (
        values.join(before, [*KEY], "left")
        .filter(is_new)
        .groupBy(*KEY, "run")
        .agg(
            *(F.first(f"known_{name}").alias(f"known_{name}") for name in (*_VALUES, "to_offsets")),
            *(
                F.expr(f"{how}(value, journal_offset) as {name}")
                for how, name in (("min_by", "open"), ("max_by", "close"))
            ),
            *(F.expr(f"{how}(value) as {name}") for how, name in (("max", "high"), ("min", "low"), ("count", "count"))),
            *(F.expr(f"{how}(time) as {name}") for how, name in (("min", "first_time"), ("max", "last_time"))),
            F.max("journal_offset").alias("to_offset"),
        )
    )
    summed = of_runs.groupBy(*KEY).agg(
        F.expr("coalesce(first(known_open), min_by(open, first_time)) as open"),
        F.expr("greatest(first(known_high), max(high)) as high"),
        F.expr("least(first(known_low), min(low)) as low"),
        F.expr("max_by(close, last_time) as close"),
        F.expr("coalesce(first(known_count), 0) + sum(count) as count"),
        F.first("known_to_offsets").alias("known"),
        F.expr("map_from_entries(collect_list(struct(run, to_offset))) as come"),
    )
    return summed.selectExpr(*KEY, *_VALUES, f"{_BOTH} as to_offsets")


_BOTH = """map_concat(map_filter(coalesce(known, cast(map() as map<string, bigint>)), (run, _) -> not map_contains_key(come, run)),
    come)"""


def _numbers(messages: DataFrame, field: str) -> DataFrame:
    """The messages that hold a number, with it as `value`."""
    text = "cast(content as string)"
    number = _number(f"get_json_object({text}, '{_quoted(field)}')")
    if field == "$":
        number = f"coalesce({number}, {_number(text)})"
    found = messages.filter("kind != 'bytes'").selectExpr(
        *("node", "subject", "run", "time", "arrival", "journal_offset", f"{number} as value")
    )
    return found.filter("value is not null and abs(value) < double('infinity')")


def _number(text: str) -> str:
    """The number that a text is. Spark would take `Infinity` and `1d` for numbers, too."""
    return f"if(trim({text}) rlike '^{NUMBER}$', try_cast(trim({text}) as double), null)"


_VALUES = ("open", "high", "low", "close", "count")


def bar_messages(rows: DataFrame, prefix: str = "/bars/1s") -> DataFrame:
    """Bars as messages to publish: one subject for each, below `prefix`. A bar that has grown is another message;
    the same bar again is the same one, by its key.
    """
    content = F.to_json(
        F.struct(F.unix_millis("window_start").alias("time"), F.unix_millis("window_end").alias("until"), *_VALUES)
    )
    key = F.concat_ws("|", "node", "subject", F.unix_millis("window_start"), "count")
    return rows.select(
        F.concat(F.lit(prefix), "subject").alias("subject"),
        content.alias("content"),
        F.lit("json").alias("kind"),
        F.sha2(key, 256).alias("key"),
    )


def _quoted(field: str) -> str:
    return field.replace("\\", "\\\\").replace("'", "\\'")
