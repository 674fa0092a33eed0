"""Sessions: who was connected, from when to when, and how the connection ended.

A session is put together from the rows of `access` that its connection left, in any order and number: each row is a
part, parts of one connection combine, and combining is the same whichever comes first or twice. So a stream needs
no state of its own: what it knows of a session is the session's row in the table.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

KEY = ("node", "run", "connection")
RECONNECT_S = 30
LOST = "lost with its node"
_FIRST = ("tenant", "identity", "authority", "client", "address", "protocol")


def session_parts(access: DataFrame) -> DataFrame:
    """What each row of `access` says of its session. A refused connection never was one."""
    return access.filter("kind != 'refused' and connection != 0").selectExpr(
        *(*KEY, *(f"nullif({name}, '') as {name}" for name in _FIRST)),
        "if(kind = 'connected', time, null) as started",
        "if(kind = 'disconnected', time, null) as ended",
        "if(kind = 'disconnected', code, null) as code",
        "if(kind = 'disconnected', reason, null) as reason",
        "if(kind = 'disconnected', duration_ms, null) as duration_ms",
        "time as first_seen",
        "time as last_seen",
        "coalesce(kind = 'subscribed' and resumed_from is not null, false) as resumed",
        "cast(null as string) as end_state",
    )


def combine_sessions(parts: DataFrame) -> DataFrame:
    """Parts, and sessions that were put together before, as one row for each connection."""
    whole = parts.groupBy(*KEY).agg(
        *(F.max(name).alias(name) for name in _FIRST),
        *(F.min(name).alias(name) for name in ("started", "first_seen")),
        *(F.max(name).alias(name) for name in ("last_seen", "code", "reason", "duration_ms", "resumed")),
        F.expr(f"max(if(end_state = '{LOST}', null, ended)) as left_at"),
        F.expr(f"max(if(end_state = '{LOST}', ended, null)) as lost_at"),
    )
    # what a disconnected row says counts, also where it comes after the session was taken for lost
    ended = "coalesce(left_at, if(lost_at is null, null, greatest(lost_at, last_seen)))"
    how = f"case when left_at is not null then 'closed' when lost_at is not null then '{LOST}' else 'open' end"
    began = "coalesce(started, if(duration_ms is null, null, ended - make_dt_interval(0, 0, 0, duration_ms / 1000.0)), first_seen)"
    told = whole.withColumns({"ended": F.expr(ended), "end_state": F.expr(how)}).drop("left_at", "lost_at")
    return told.withColumn("started", F.expr(began))


def sessions(access: DataFrame) -> DataFrame:
    """Every session of these rows."""
    return combine_sessions(session_parts(access))


def close_lost(known: DataFrame, runs: DataFrame) -> DataFrame:
    """Sessions that are still open in a run that another run follows: they ended with their node, at the latest
    when the next began.
    """
    followed = (
        runs.filter("kind = 'began' and follows_run is not null")
        .groupBy("node", F.col("follows_run").alias("run"))
        .agg(F.min("time").alias("lost"))
    )
    open_ = known.filter("end_state = 'open'").join(F.broadcast(followed), ["node", "run"], "inner")
    return open_.withColumns({"ended": F.expr("greatest(lost, last_seen)"), "end_state": F.lit(LOST)}).drop("lost")


def concurrency(known: DataFrame) -> DataFrame:
    """Minute by minute, wherever somebody came or went: the most at once, comings, goings, and comings within half
    a minute of the same client's going. Two authorities may use one name for two people: only the same one's holder came back, or the
    holder of a name whose authority was not written down yet. Between two of its minutes nothing changed, and `at_end` still holds.
    """
    columns = [F.col(name) for name in ("node", "tenant", "identity", "client")]
    name = [*columns, F.regexp_replace("address", ":[0-9]+$", "")]
    who = Window.partitionBy(*name, "authority").orderBy("started")
    before = Window.partitionBy(*name).orderBy("started").rowsBetween(Window.unboundedPreceding, -1)
    back = " or ".join(
        f"coalesce(unix_micros(started) - unix_micros({left}) between 0 and {RECONNECT_S} * 1000000, false)"
        for left in ("left_at", "left_unknown.ended")
    )
    unknown = F.last(F.expr("if(authority = '', struct(ended), null)"), ignorenulls=True)
    came = known.fillna("", ["tenant", "identity", "authority", "client", "address"]).withColumns(
        {"left_at": F.lag("ended").over(who), "left_unknown": unknown.over(before)}
    )
    moves = (
        came.withColumn("back", F.expr(back))
        .selectExpr(
            "node",
            "tenant",
            """explode(filter(array(named_struct('time', started, 'by', 1, 'back', int(back)),
            named_struct('time', ended, 'by', -1, 'back', 0)), each -> each.time is not null)) as move""",
        )
        .selectExpr("node", "tenant", "move.*")
    )
    running = Window.partitionBy("node", "tenant").orderBy("time", "by").rowsBetween(Window.unboundedPreceding, 0)
    level = moves.withColumn("level", F.sum("by").over(running))
    return level.groupBy("node", "tenant", F.date_trunc("minute", "time").alias("minute")).agg(
        F.expr("greatest(max(level), max(level - by)) as peak"),
        F.expr("max_by(level, struct(time, by)) as at_end"),
        F.expr("count_if(by = 1) as connects"),
        F.expr("count_if(by = -1) as disconnects"),
        F.expr("sum(back) as reconnects"),
    )
