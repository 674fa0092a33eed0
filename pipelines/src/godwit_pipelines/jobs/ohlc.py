"""`ohlc`: first, highest, lowest and last value of each subject and window, into a table and, live, back into
subjects.

Reads the journal itself, not the landed table: a bar is to be out within a second and a half. What is published and
what is kept are queries of their own, so that the table, whose merges take their time, keeps no bar waiting, and that what is published,
which remembers the windows of a short while only, leaves nothing out of the table.
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
    """Bars of the subjects below --option subjects=PREFIX."""
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
    """Those of subjects that begin so, but no bars: these are below their own subject."""
    subject = F.col("subject")
    return messages.filter(subject.startswith(beginning) & ~subject.startswith(f"{bars_at}/"))


def keep(run: Run, new: DataFrame, batch: int) -> None:
    """The bars in the table and these values together; only the bars of their time are read."""
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
    """Raises ConfigInvalid for a place that no message can be published at, a beginning that no subject has, what is no time or no path
    into JSON, and where nothing would be left to do.
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
