"""`bars`: first, highest, lowest and last value of each subject and window, into a table and, live, back into
subjects.

Reads the journal itself, not the landed table: a bar is to be out within a second and a half. It publishes first
and writes the table after.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..transforms.bars import bar_messages, bars
from .job import Job, Outcome, Run


def run(run: Run) -> Outcome:
    """Bars of the subjects below --option subjects=PREFIX."""
    width, prefix = run.options.get("width", "1 second"), run.options.get("publish", "")
    rows = run.journal_stream("messages").filter(F.col("subject").startswith(run.options.get("subjects", "/")))
    rows = rows.filter(~F.col("subject").startswith(prefix or "/bars/"))  # not bars of bars
    keeps = run.options.get("table", "yes") == "yes"

    def write(changed: DataFrame, batch: int) -> None:
        kept = changed.persist()
        if prefix:
            run.lake.publish(bar_messages(kept, prefix), app="bars", batch=batch)
        if keeps:
            run.lake.merge("gold.bars", kept, app="bars", batch=batch)
        kept.unpersist()

    found = bars(rows, width, run.options.get("field", "$"), run.options.get("late", "10 seconds"))
    run.start(found.writeStream.outputMode("update").foreachBatch(write), "bars")
    return Outcome()


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
)
