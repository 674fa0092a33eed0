"""`bars`: first, highest, lowest and last value of each subject and window, into a table and, live, back into
subjects.

Reads the journal itself, not the landed table: a bar is to be out within a second and a half. What is published and
what is kept are queries of their own, so that the table, whose merges take their time, keeps no bar waiting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..subject import check_beginning, check_subject
from ..transforms.bars import bar_messages, bars
from .job import Job, Outcome, Run
from .merging import merge_stream

_TABLE_EVERY_S = 10.0


def run(run: Run) -> Outcome:
    """Bars of the subjects below --option subjects=PREFIX."""
    width, prefix = run.options.get("width", "1 second"), run.options.get("publish", "")
    rows = run.journal_stream("messages").filter(F.col("subject").startswith(run.options.get("subjects", "/")))
    rows = rows.filter(~F.col("subject").startswith(prefix or "/bars/"))  # not bars of bars
    late, field = run.options.get("late", "10 seconds"), run.options.get("field", "$")
    found = bars(rows, width, field, late, may_repeat=False)  # the source gives each row once

    def publish(changed: DataFrame, batch: int) -> None:
        ordered = changed.repartition("subject").sortWithinPartitions("subject", "start")
        run.lake.publish(bar_messages(ordered, prefix), app="bars", batch=batch)

    if prefix:
        run.start(found.writeStream.outputMode("update").foreachBatch(publish), "bars")
    if run.options.get("table", "yes") == "yes":
        slower = run if run.every_s is None else replace(run, every_s=max(run.every_s, _TABLE_EVERY_S))
        merge_stream(slower, found, "gold.bars", "bars-table")
    return Outcome()


def check(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for a place that no message can be published at, and a beginning that no subject has."""
    if options.get("publish"):
        check_subject("publish", options["publish"])
    check_beginning("subjects", options.get("subjects", "/"))


JOB = Job(
    name="bars",
    about="first, highest, lowest and last value of each subject and window, into a table and live into subjects",
    run=run,
    reads=("journal.messages",),
    writes=("gold.bars", "subjects"),
    every_s=0.2,
    options={
        "field": "JSON path of the number in the content: $.price; $ is the content itself, and the default.",
        "width": "How long a window is: '1 second' by default. Another needs another lake or checkpoint.",
        "subjects": "Only subjects that begin so; all by default.",
        "publish": "Publish each bar below this subject, as /bars/1s; not published by default.",
        "table": "no leaves the table gold.bars alone.",
        "late": "How late a value may come and still count: '10 seconds' by default.",
    },
    check=check,
)
