"""Measures the audit, into benchmarks/results/pipelines/audit.json.

    .venv-pipelines/bin/python -m benchmarks.pipelines.audit [RANGES [RANGES]]

Ranges of 30 messages on 2,000 subjects, 100 rows for each subscription (the first names its place), with faults at known
places; a warm session on two cores, ranges and messages in tables, as the job finds them, of which the disk is not read again.
All of the audit counts: judging, faults, subscriptions and the verdict. Java's compiler is at work for some thirty rounds, so
many are the plans: they are left out, and kept beside.

The goal names no size: three audits are held against it. Beside 2,000,000 ranges two are measured, after a round that is left out each:
`orderly`, the same ranges without faults, where nothing is left to be judged; and `larger`, so many more ranges, with
faults, to tell what an audit costs whatever its size from what a range costs. The messages are the same for all. `baseline` is one window
over the same ranges and a count of what does not follow in it, nothing else: what a rate is worth on this machine, on this day.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from benchmarks.pipelines.cpu import cpu_seconds
from godwit_pipelines.beside import do_beside
from godwit_pipelines.schemas import ACCESS, RUNS
from godwit_pipelines.session import build_session
from godwit_pipelines.settings import SparkSettings
from godwit_pipelines.transforms.audit import audited
from godwit_pipelines.transforms.torn import find_torn

RESULTS = Path(__file__).resolve().parents[1] / "results" / "pipelines" / "audit.json"
GOAL, WARM, ROUNDS, BASELINE_ROUNDS, SUBJECTS, EACH, SPAN = 500_000, 32, 5, 5, 2_000, 100, 30


def make_ranges(spark: SparkSession, count: int, *, has_faults: bool = True) -> DataFrame:
    """Each subscription begins with the place that it names, as a node writes it down. Of every 5,000 ranges one left a
    gap before it, one has a hole, one begins three messages back, if there are to be faults.
    """
    turn, fault = f"(id % {EACH})", "(id % 5000)" if has_faults else "0"
    end = f"({turn} * {SPAN})"
    begin = f"({end} - {SPAN} + 1 + if({fault} = 7, 3, if({fault} = 1007, -3, 0)))"
    return spark.range(count).selectExpr(
        *("'n' as node", "'a' as run", "'' as tenant", "id as journal_offset"),
        "timestamp_micros(1795250000000000 + id) as time",
        *(f"id div {EACH} as connection", "'' as identity", "'' as client"),
        f"concat('/subject/', (id div {EACH}) % {SUBJECTS}) as selector",
        *("false as is_pattern", "1L as epoch", f"if({turn} = 0, null, {begin}) as from_sequence"),
        f"{end} as to_sequence",
        *(
            "cast(null as long) as from_arrival",
            "cast(null as long) as to_arrival",
            "cast(null as string) as arrival_run",
        ),
        f"if({turn} = 0, 0L, {end} - {begin} + 1 - if({fault} = 2007, 1, 0)) as count",
        *("0L as bytes", "0L as conflated", "0L as gaps", "0L as gap_count", f"{turn} = 0 as confirmed"),
    )


def make_messages(spark: SparkSession) -> DataFrame:
    last = (EACH - 1) * SPAN
    return spark.range(SUBJECTS * last).selectExpr(
        *("'n' as node", "'a' as run", f"concat('/subject/', id div {last}) as subject", "1L as epoch"),
        *(
            f"id % {last} + 1 as sequence",
            "id as journal_offset",
            "id as arrival",
            "timestamp_micros(1795260000000000) as time",
        ),
    )


def store(rows: DataFrame, folder: Path) -> DataFrame:
    """Write the rows as a table on the disk; each query reads it again."""
    rows.write.parquet(str(folder))
    return rows.sparkSession.read.parquet(str(folder))


def audit_once(deliveries: DataFrame, messages: DataFrame, spark: SparkSession) -> tuple[float, dict[str, int]]:
    begin = time.perf_counter()
    access, runs = spark.createDataFrame([], ACCESS), spark.createDataFrame([], RUNS)
    with audited(
        deliveries, messages, access, runs, None, lambda: find_torn(deliveries, access, runs, {}, {})
    ) as found:
        kinds = found.faults.groupBy("kind").sum("messages").toDF("kind", "messages")
        counted: list[Any] = []
        do_beside(  # as the job does
            spark,
            lambda: found.verdict.write.format("noop").mode("overwrite").save(),
            lambda: found.ranges.write.format("noop").mode("overwrite").save(),
            lambda: counted.extend(kinds.collect()),
        )
        took = time.perf_counter() - begin
    return took, {row.kind: row.messages for row in counted}


def follow_once(deliveries: DataFrame) -> tuple[float, dict[str, int]]:
    """Each range held against the one before it: how long that takes, and how many ranges do not follow, or lack something."""
    begin = time.perf_counter()
    ranges = deliveries.selectExpr(
        *("connection", "selector", "epoch", "journal_offset", "to_sequence as hi", "count"),
        "if(confirmed, to_sequence + 1, from_sequence) as lo",
    )
    before = Window.partitionBy("connection", "selector", "epoch").orderBy("journal_offset")
    followed = ranges.withColumn("last", F.lag("hi").over(before))
    asked = (
        "count_if(lo > last + 1) as gap",
        "count_if(lo <= last) as repeat",
        "count_if(hi - lo + 1 > count) as hole",
    )
    [found] = followed.selectExpr(*asked).collect()
    return time.perf_counter() - begin, found.asDict()


def measure_baseline(deliveries: DataFrame) -> dict[str, Any]:
    """The rates of some rounds after as many that are left out."""
    count, rates, found = deliveries.count(), [], {}
    for _ in range(2 * BASELINE_ROUNDS):
        took, found = follow_once(deliveries)
        rates.append(round(count / took))
    rates = rates[BASELINE_ROUNDS:]
    return {"ranges": count, "found": found, "ranges_per_s": round(statistics.median(rates)), "rounds": rates}


def measure(deliveries: DataFrame, messages: DataFrame, spark: SparkSession, warm: int) -> dict[str, Any]:
    """The rates of some rounds after those that are left out."""
    count, rates, by_cpu, kinds = deliveries.count(), [], [], {}
    for _ in range(warm + ROUNDS):
        begun = cpu_seconds()
        took, kinds = audit_once(deliveries, messages, spark)
        rates.append(count / took)
        by_cpu.append(count / (cpu_seconds() - begun))
    return {
        **{"ranges": count, "found": kinds, "left_out": [round(rate) for rate in rates[:warm]]},
        **{"ranges_per_s": round(statistics.median(rates[warm:])), "rounds": [round(rate) for rate in rates[warm:]]},
        "ranges_per_cpu_s": round(statistics.median(by_cpu[warm:])),
    }


def main(count: int, larger: int) -> None:
    load = round(os.getloadavg()[0], 1)
    spark = build_session(SparkSettings(master="local[2]", driver_memory="3g"), name="measure", life="rounds")
    with TemporaryDirectory() as folder:
        tables = Path(folder)
        messages = store(make_messages(spark), tables / "messages")
        ranges = store(make_ranges(spark, count), tables / "ranges")
        result: dict[str, Any] = {"goal": GOAL, "messages": messages.count()}
        result |= measure(ranges, messages, spark, WARM)
        result["cold"] = result["left_out"][0]
        orderly = store(make_ranges(spark, count, has_faults=False), tables / "orderly")
        result["orderly"] = measure(orderly, messages, spark, 1)
        result["larger"] = measure(store(make_ranges(spark, larger), tables / "larger"), messages, spark, 1)
        result["baseline"] = measure_baseline(ranges)
    spark.stop()
    result |= {"load_before": load, "load_after": round(os.getloadavg()[0], 1), "cores": os.cpu_count()}
    result |= {"spark": pyspark.__version__, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    print(json.dumps(result))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    main(*(given + [2_000_000, 6_000_000][len(given) :]))
