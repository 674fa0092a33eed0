"""Sessions are put together from rows in any order, whole or not."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from godwit_pipelines.schemas import ACCESS, RUNS
from godwit_pipelines.transforms.sessions import KEY, close_lost, combine_sessions, concurrency, session_parts, sessions
from tests.pipelines.transforms.rows import frame
from tests.pipelines.transforms.streaming import collected, run, stream_of

BEGIN = 1_795_250_040_000_000  # a whole minute
Row = dict[str, Any]
SHOWN = ("connection", "started", "ended", "end_state", "code", "resumed", "identity")


def event(offset: int, at_s: float, kind: str, connection: int, **fields: Any) -> Row:
    row = {
        "node": "n",
        "run": "a",
        "journal_offset": offset,
        "time": BEGIN + int(at_s * 1e6),
        "kind": kind,
        "connection": connection,
    }
    return {
        **row,
        "identity": f"who-{connection}",
        "client": "c/1",
        "address": f"10.0.0.{connection}:5",
        "protocol": "json",
        **fields,
    }


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(BEGIN / 1e6 + seconds, datetime.UTC).replace(tzinfo=None)


GOLDEN = [
    [event(0, 0, "connected", 1), event(1, 1, "connected", 2), event(2, 2, "refused", 0), event(3, 3, "refused", 9)],
    [
        event(5, 30, "disconnected", 1, code=1000, duration_ms=30_000),
        event(4, 2, "subscribed", 1, selector="/a", resumed_from="1.7"),
    ],
    [
        event(0, 0, "connected", 1),
        event(6, 61, "disconnected", 3, code=4001, duration_ms=20_000),
    ],  # one again, one whose beginning is missing
    [event(7, 65, "connected", 1, run="b"), event(8, 70, "connected", 4)],
]


def test_sessions_come_out_the_same_as_a_batch_and_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    every = frame(spark, ACCESS, [row for rows in GOLDEN for row in rows])
    expected = collected(sessions(every), ("run", *SHOWN))
    assert [row for row in expected if row[0] == "a"] == [
        ("a", 1, at(0), at(30), "closed", 1000, True, "who-1"),
        ("a", 2, at(1), None, "open", None, False, "who-2"),
        ("a", 3, at(41), at(61), "closed", 4001, False, "who-3"),
        ("a", 4, at(70), None, "open", None, False, "who-4"),
    ]
    table: dict[tuple[Any, ...], Any] = {}

    def merge(parts: DataFrame, _: int) -> None:
        known = spark.createDataFrame(list(table.values()), combine_sessions(parts).schema)
        mine = known.select(parts.columns).join(parts.select(*KEY).distinct(), [*KEY], "left_semi")
        table.update(
            {tuple(row[name] for name in KEY): row for row in combine_sessions(parts.unionByName(mine)).collect()}
        )

    run(session_parts(stream_of(spark, tmp_path / "access", ACCESS, GOLDEN)), merge, tmp_path)
    assert sorted(tuple(row[name] for name in ("run", *SHOWN)) for row in table.values()) == expected


def test_sessions_of_a_run_that_was_cut_short_end_with_it(spark: SparkSession) -> None:
    known = sessions(frame(spark, ACCESS, [row for rows in GOLDEN for row in rows]))
    began = {
        "node": "n",
        "run": "b",
        "kind": "began",
        "time": BEGIN + 64_000_000,
        "follows_run": "a",
        "follows_clean": False,
    }
    lost = close_lost(known, frame(spark, RUNS, [began]))
    assert collected(lost, ("connection", "ended", "end_state")) == [
        (2, at(64), "lost with its node"),
        (4, at(70), "lost with its node"),  # its own row is later than the next run's first: clocks
    ]


def test_what_lands_after_a_session_was_taken_for_lost_still_counts(spark: SparkSession) -> None:
    first = [event(0, 0, "connected", number) for number in (1, 2, 3)]
    later = [event(3, 4, "disconnected", 1, code=1000, duration_ms=4_000), event(4, 9, "subscribed", 2, selector="/a")]
    runs = frame(
        spark,
        RUNS,
        [
            {
                "node": "n",
                "run": "b",
                "journal_offset": 0,
                "time": BEGIN + 8_000_000,
                "kind": "began",
                "follows_run": "a",
            }
        ],
    )
    known = sessions(frame(spark, ACCESS, first))
    lost = close_lost(known, runs).select(known.columns)
    found = combine_sessions(session_parts(frame(spark, ACCESS, later)).unionByName(lost))
    assert collected(found, ("connection", "ended", "end_state")) == [
        (1, at(4), "closed"),
        (2, at(9), "lost with its node"),
        (3, at(8), "lost with its node"),
    ]


def test_concurrency_counts_the_most_at_once(spark: SparkSession) -> None:
    rows = [event(n, n, "connected", n) for n in range(1, 11)]
    rows += [event(20 + n, 30 + n, "disconnected", n) for n in range(1, 6)]
    again = {"identity": "who-1", "address": "10.0.0.1:77"}
    rows += [event(40, 45, "connected", 50, **again), event(41, 200, "disconnected", 50, **again)]
    levels = concurrency(sessions(frame(spark, ACCESS, rows)))
    assert collected(levels, ("minute", "peak", "at_end", "connects", "disconnects", "reconnects")) == [
        (at(0), 10, 6, 11, 5, 1),
        (at(180), 6, 5, 0, 1, 0),
    ]


def test_two_people_of_one_name_are_never_taken_for_one_who_came_back(spark: SparkSession) -> None:
    """A certificate's ann and a token's, on one machine with one client: each came back for herself. Whose authority an older node did not
    write down may be either.
    """
    ann = {"identity": "ann", "address": "10.0.0.1:5"}
    token, certificate, older = ({**ann, "authority": each} for each in ("jwt:https://id.example", "certificate", None))
    visits = [
        *((0, 10, token), (11, 20, certificate), (21, 30, token)),  # of the token's ann 11 s apart
        *((300, 310, token), (311, 320, certificate)),  # somebody else each time
        *((600, 610, older), (611, 620, certificate), (621, 630, certificate)),
    ]
    rows = [
        event(2 * number + end, visit[end], kind, number, **visit[2])
        for number, visit in enumerate(visits, 1)
        for end, kind in enumerate(("connected", "disconnected"))
    ]
    known = sessions(frame(spark, ACCESS, rows))
    known_authority = dict(collected(known, ("connection", "authority")))
    assert known_authority == {number: visit[2]["authority"] for number, visit in enumerate(visits, 1)}
    assert collected(concurrency(known), ("minute", "connects", "reconnects")) == [
        (at(0), 3, 1),
        (at(300), 2, 0),
        (at(600), 3, 2),
    ]
