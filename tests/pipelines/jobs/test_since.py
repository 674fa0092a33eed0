"""An audit of the hours from a time on judges them whole, and its tables say the same as one of all hours."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.errors import TableMissing
from godwit_pipelines.jobs.audit import describe_declared
from godwit_pipelines.lake import Lake
from godwit_pipelines.schemas import DELIVERIES, MESSAGES
from tests.pipelines.conftest import Runs
from tests.pipelines.transforms.rows import frame

TEN = 1_795_255_200_000_000  # 2026-11-21 10:00
MINUTE = 60_000_000


def range_of(offset: int, connection: int, minute: int, first: int, last: int) -> dict[str, Any]:
    place = {"from_sequence": first, "to_sequence": last, "epoch": 1, "count": last - first + 1}
    who = {"node": "n", "run": "r", "connection": connection, "selector": f"/{connection}"}
    return {**who, **place, "journal_offset": offset, "time": TEN + minute * MINUTE}


def message_of(offset: int, connection: int, sequence: int, minute: int) -> dict[str, Any]:
    place = {"sequence": sequence, "epoch": 1, "arrival": offset, "subject": f"/{connection}", "kind": "text"}
    return {"node": "n", "run": "r", "journal_offset": offset, "time": TEN + minute * MINUTE, **place}


def tables(lake: Lake) -> list[list[str]]:
    names = ("gold.audit_faults", "gold.audit_ranges", "gold.audit_verdict")
    return [sorted(map(str, lake.read(name).collect())) for name in names]


def test_hours_from_a_time_on_are_judged_whole(spark: SparkSession, lake: Lake, run_job: Runs) -> None:
    messages = [message_of(n, 1 + n // 5, n % 5 + 1, -50 if n < 10 else 5) for n in range(15)]
    lake.append("bronze.messages", frame(spark, MESSAGES, messages))
    # the first lacks a message at nine, the second is under way from nine to ten, the third lacks one at ten
    handed = [range_of(0, 1, -40, 1, 2), range_of(1, 1, -30, 4, 5), range_of(2, 2, -20, 1, 3)]
    handed += [range_of(3, 3, 10, 1, 2), range_of(4, 2, 20, 4, 5), range_of(6, 3, 50, 4, 5)]
    lake.append("bronze.deliveries", frame(spark, DELIVERIES, [*handed, range_of(5, 4, 30, 1, 1)]))
    assert run_job("audit").found == 2
    every = tables(lake)
    assert run_job("audit", since="2026-11-21 10:30").found == 2 and tables(lake) == every
    lake.replace("bronze.deliveries", frame(spark, DELIVERIES, [*handed, range_of(5, 3, 30, 3, 3)]))
    assert run_job("audit", since="2026-11-21T11:30+01:00").found == 1, "what is whole by now is no fault any more"
    since = tables(lake)
    assert run_job("audit").found == 1 and tables(lake) == since
    lake.replace("bronze.deliveries", frame(spark, DELIVERIES, handed))
    assert run_job("audit").found == 1
    unproven = lake.read("gold.audit_verdict").where("verdict = 'unproven'").select("selector", "erased").collect()
    assert [tuple(row) for row in unproven] == [("/3", 1)], "one row of deliveries no longer exists"


def test_a_time_to_come_is_no_proof(spark: SparkSession, lake: Lake, run_job: Runs) -> None:
    lake.append("bronze.deliveries", frame(spark, DELIVERIES, [range_of(0, 1, 5, 1, 5)]))
    with pytest.raises(TableMissing, match="bronze.messages"):
        run_job("audit")
    lake.append("bronze.messages", frame(spark, MESSAGES, [message_of(n, 1, n + 1, 0) for n in range(5)]))
    assert run_job("audit", since="2030-01-01").text == (
        "nothing was delivered since 2030-01-01 00:00:00 UTC: the newest row of bronze.deliveries is from 2026-11-21 10:05:00 UTC"
    )
    assert run_job("audit").text.startswith("PROVEN: 5 messages")
    assert run_job("audit", since="2026-11-21 10:06").text.startswith("nothing was delivered")
    assert run_job("audit", since="0 seconds").text.startswith("nothing was delivered"), "so long ago"


def test_what_was_told_and_what_the_journal_excuses_are_said_apart() -> None:
    excused = "; 1 message cannot be judged, because the journal lost rows there"
    assert (describe_declared(0, 0), describe_declared(0, 1)) == ("", excused)
    assert describe_declared(1_200, 1) == "; 1,200 missing messages reported to clients" + excused


@pytest.mark.long
def test_what_was_found_before_the_time_stays(spark: SparkSession, lake: Lake, run_job: Runs) -> None:
    lake.append("bronze.messages", frame(spark, MESSAGES, [message_of(n, n // 5, n % 5 + 1, -50) for n in range(10)]))
    handed = [range_of(0, 0, -40, 1, 2), range_of(1, 0, -30, 4, 5), range_of(2, 1, 10, 1, 5)]
    lake.append("bronze.deliveries", frame(spark, DELIVERIES, handed))
    assert run_job("audit").found == 1
    every = tables(lake)
    lake.replace("bronze.deliveries", frame(spark, DELIVERIES, handed[2:]))
    assert run_job("audit", since="2026-11-21 10:05").found == 1 and tables(lake) == every
    lake.replace("bronze.deliveries", frame(spark, DELIVERIES, []))
    run_job("audit", since="2026-11-21 10:00")
    assert [len(rows) for rows in tables(lake)] == [1, 1, 1]
