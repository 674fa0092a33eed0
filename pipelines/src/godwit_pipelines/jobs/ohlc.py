"""`ohlc`: first, highest, lowest and last value of each subject and window, in a table and, live, on subjects.

Reads the journal, not the landed table, because a live value must be out within a second and a half. The table and the live values have a
query each: slow merges do not delay live values, and live values, which remember windows for a short time, leave nothing out of the
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..errors import ConfigInvalid
from ..subject import check_beginning, check_subject
from ..tables import DATE
from ..transforms.ohlc import add_bars, bar_messages, bars, values
from .job import Job, Outcome, Run
from .options import is_yes, span_of

_TABLE_EVERY_S = 20.0


def run(run: Run) -> Outcome:
    """Compute the values of the subjects below --option subjects=PREFIX."""
    width, prefix = width_of(run.options), run.options.get("publish", "")
    rows = pick(run.journal_stream("messages"), run.options.get("subjects", "/"), prefix or "/bars")
    late, field = late_of(run.options), run.options.get("field", "$")

    def publish(changed: DataFrame, batch: int) -> None:
        ordered = changed.repartition("subject").sortWithinPartitions("subject", "window_start")
        run.lake.publish(bar_messages(ordered, prefix), app="ohlc", batch=batch)

    if prefix:
        found = bars(rows, width, field, late, may_repeat=False)  # the source gives each row once
        run.start(found.writeStream.outputMode("update").foreachBatch(publish), "ohlc")
    if is_yes(run.options, "table", "yes"):
        slower = run if run.every_s is None else replace(run, every_s=max(run.every_s, _TABLE_EVERY_S))

        def write(new: DataFrame, batch: int) -> None:
            keep(run, values(new, width, field), batch)

        slower.start(rows.writeStream.foreachBatch(write), "bars-kept", merges=["gold.ohlc"])
    return Outcome()


def pick(messages: DataFrame, beginning: str, bars_at: str) -> DataFrame:
    """Messages on subjects with this prefix, without the values that this job publishes on its own subjects."""
    subject = F.col("subject")
    return messages.filter(subject.startswith(beginning) & ~subject.startswith(f"{bars_at}/"))


def keep(run: Run, new: DataFrame, batch: int) -> None:
    """The table's values and these combined. Only values of the same time are read."""
    new, app = new.persist(), run.app("bars-kept")
    try:
        times = new.selectExpr(
            "unix_micros(min(window_start)) as first", "unix_micros(max(window_start)) as last"
        ).first()
        if times is None or times.first is None:
            run.lake.merge("gold.ohlc", run.lake.read("gold.ohlc").limit(0), app=app, batch=batch)
            return
        first, last = (F.timestamp_micros(F.lit(time)) for time in times)
        known = run.lake.read("gold.ohlc").filter(F.col(DATE).between(F.to_date(first), F.to_date(last)))
        changed = add_bars(new, known.filter(F.col("window_start").between(first, last)))
        run.lake.merge("gold.ohlc", changed, app=app, batch=batch)
    finally:
        new.unpersist()


def width_of(options: Mapping[str, str]) -> str:
    return span_of(options, "width", "1 second")


def late_of(options: Mapping[str, str]) -> str:
    return span_of(options, "late", "10 seconds", may_be_none=True)


def check(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for an option that is not valid: a subject to publish on, a prefix, a time or a JSON path; or if the options
    leave nothing to do.
    """
    width_of(options)
    late_of(options)
    if options.get("publish"):
        check_subject("publish", options["publish"])
    check_beginning("subjects", options.get("subjects", "/"))
    if not options.get("field", "$").startswith("$"):
        raise ConfigInvalid(
            "--option field", options["field"], "must be a JSON path that begins with $", hint="$.price"
        )
    if not is_yes(options, "table", "yes") and not options.get("publish"):
        raise ConfigInvalid("--option table", "no", "needs --option publish, else there is nothing to do")


JOB = Job(
    name="ohlc",
    about="computes first, highest, lowest and last value by subject and window, in a table and as live messages",
    run=run,
    reads=("journal.messages",),
    writes=("gold.ohlc", "subjects"),
    queries=("bars-kept",),
    every_s=0.2,
    takes_kafka=False,
    options={
        "field": "JSON path of the number in the content, such as $.price. Default: $, the content itself.",
        "width": "Length of a window. Default: '1 second'. Changing it needs --rebuild.",
        "subjects": "Only subjects with this prefix. Default: all.",
        "publish": "Publish each window under this subject, such as /bars/1s. Default: not published.",
        "table": "no: do not write the table gold.ohlc.",
        "late": "How late a value can arrive and still change a published window. Default: '10 seconds'. The table counts all values.",
    },
    check=check,
)
