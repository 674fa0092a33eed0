"""History as messages to publish again: what was accepted in a time, on some subjects, of some tenants, in its
order, each once by its key.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .selector import match_subjects


def choose(messages: DataFrame, selector: str, since: str = "", until: str = "", tenant: str = "") -> DataFrame:
    """The messages to replay: of a subject or pattern, from `since` up to, not including, `until` (texts of times,
    UTC), of a tenant.
    """
    wanted = messages.sparkSession.createDataFrame([(selector,)], "selector string")
    found = messages.join(
        F.broadcast(match_subjects(wanted, messages.select("subject").distinct()).select("subject")),
        "subject",
        "left_semi",
    )
    for condition, text in (
        ("time >= timestamp(:text)", since),
        ("time < timestamp(:text)", until),
        ("tenant = :text", tenant),
    ):
        if text:
            found = found.filter(F.expr(condition.replace(":text", _quoted(text))))
    return found


def split_expired(chosen: DataFrame, now: datetime) -> tuple[DataFrame, DataFrame]:
    """The messages that have not expired, and those that have: their publisher wanted nobody to receive these any more."""
    us = int(now.timestamp() * 1_000_000)
    is_over = F.expr(f"coalesce(unix_micros(time) + expiry_s * 1000000 <= {us}, false)")
    return chosen.where(~is_over), chosen.where(is_over)


def replay_messages(chosen: DataFrame, name: str, prefix: str = "", *, replies: bool = False) -> DataFrame:
    """As messages to publish, below `prefix`. `name` is the replay's: under the same name the same message is not
    published twice, under another it is; what did not change its subject's state then does not now. `partition`
    keeps each subject's order; `node`, `time` and `arrival` sort within it. A message is known by its node, run and offset: after a journal
    began anew, epochs and sequences of a subject may be given again.
    With `replies` a message names the subject on which its publisher awaited answers: whoever answers requests does so again, to somebody
    who asked nothing.
    """
    key = F.concat_ws("|", F.lit(name), "node", "run", "journal_offset")
    return chosen.select(
        F.concat(F.lit(prefix), "subject").alias("subject"),
        "content",
        "kind",
        F.sha2(key, 256).alias("key"),
        *(["reply_to"] if replies else []),
        F.expr("flags & 1 = 1").alias("retain"),
        *("node", "time", "run", "arrival"),
    )


def preview(chosen: DataFrame) -> DataFrame:
    """What a replay would publish, by subject: for the dry run."""
    return chosen.groupBy("subject").agg(
        F.count("*").alias("messages"),
        F.sum(F.octet_length("content").cast("long")).alias("bytes"),
        F.min("time").alias("first"),
        F.max("time").alias("last"),
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
