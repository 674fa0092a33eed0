"""Measures reading, landing and the live loops, into benchmarks/results/pipelines/io.json.

    .venv-pipelines/bin/python -m benchmarks.pipelines.measure [source] [land] [live] [ohlc]

Each value is from a warm session on two cores. In a long session, as with --every, Java's compiler is done after some
rounds; these are left out and stored separately, and the median of the rest counts. The loops run with a node on the same
machine.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.pipelines.cpu import cpu_seconds
from benchmarks.pipelines.data import write_journal
from benchmarks.pipelines.loop import measure_loop, running_node
from godwit_pipelines.config import build_config
from godwit_pipelines.jobs import JOBS, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.session import build_session
from godwit_pipelines.settings import SparkSettings

RESULTS = Path(__file__).resolve().parents[1] / "results" / "pipelines" / "io.json"
ROWS = 1_000_000
LONGER_ROWS = 4_000_000
"""Of a longer journal, of which the start of a query is a smaller part."""
WARM, ROUNDS = 6, 7
GOALS = {"source": 400_000, "land": 200_000, "live": 300, "ohlc": 1_500}


def main(which: list[str]) -> None:
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with tempfile.TemporaryDirectory(prefix="godwit-pipelines-") as folder:
        spark = build_session(SparkSettings(master="local[2]", driver_memory="2g"), name="measure")
        for name in which:
            measured = {"source": source, "land": land, "live": live, "ohlc": bars}[name](spark, Path(folder))
            found[name] = measured | {
                "goal": GOALS[name],
                "machine": machine(),
                "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            }
            print(name, json.dumps(found[name]))
        spark.stop()
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 1),
        "spark": pyspark.__version__,
        "python": platform.python_version(),
    }


def lake_of(spark: SparkSession, folder: Path, name: str, rows: int = ROWS, **more: int) -> Lake:
    data = folder / f"node-{rows}"
    if not data.exists():
        write_journal(data, rows)
    values = {"journal.paths": (str(data),), "lake.path": str(folder / name)}
    values |= {f"journal.{key}": value for key, value in more.items()}
    return Lake(spark, build_config({key: (value, "here") for key, value in values.items()}))


def rounds(once: Callable[[int], float], rows: int = ROWS, warm: int = WARM) -> dict[str, Any]:
    """Rows a second, and rows a second of processor time: the median of the rounds after those that are left out."""
    rates, by_cpu = [], []
    for number in range(warm + ROUNDS):
        begun = cpu_seconds()
        rates.append(rows / once(number))
        by_cpu.append(rows / (cpu_seconds() - begun))
    return {
        "rows_per_s": round(statistics.median(rates[warm:])),
        "rows_per_cpu_s": round(statistics.median(by_cpu[warm:])),
        "cold": round(rates[0]),
        "left_out": [round(rate) for rate in rates[:warm]],
        "rounds": [round(rate) for rate in rates[warm:]],
    }


def source(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """The journal as a stream into nothing, with the settings that a user has: checksums taken, for comparison not; and a journal
    that is four times as long.
    """

    def once(rows: int, verify: str) -> Callable[[int], float]:
        lake = lake_of(spark, folder, "source", rows)

        def run(number: int) -> float:
            frame = lake.journal_stream("messages", verify=verify)
            place = str(folder / f"place-{rows}-{verify}-{number}")
            begun = time.perf_counter()
            query = (
                frame.writeStream.format("noop").option("checkpointLocation", place).trigger(availableNow=True).start()
            )
            query.awaitTermination()
            return time.perf_counter() - begun

        return run

    found = rounds(once(ROWS, "true")) | {"unchecked_rows_per_s": rounds(once(ROWS, "false"), warm=1)["rows_per_s"]}
    return found | {"longer": {"rows": LONGER_ROWS, **rounds(once(LONGER_ROWS, "true"), LONGER_ROWS, warm=1)}}


def land(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """The journal into bronze.messages, in two batches."""

    def run(number: int) -> float:
        lake = lake_of(spark, folder, f"land-{number}", rows_per_batch=ROWS // 2)
        writer = lake.landing_journal("messages")
        begun = time.perf_counter()
        query = writer.option("checkpointLocation", lake.checkpoint("land")).trigger(availableNow=True).start()
        query.awaitTermination()
        took = time.perf_counter() - begun
        assert lake.read("bronze.messages").select("journal_offset").distinct().count() == ROWS
        shutil.rmtree(lake.folder)
        return took

    return rounds(run)


def live(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """2,000 messages a second of a real node, each back into a subject of its own."""
    with live_lake(spark, folder / "live-node") as (url, lake):

        def start() -> StreamingQuery:
            rows = lake.journal_stream("messages").where("startswith(subject, '/stocks/')")
            back = rows.selectExpr("concat('/back', subject) as subject", "content", "'json' as kind")
            writer = lake.publishing(back).option("checkpointLocation", lake.checkpoint("live"))
            return writer.trigger(processingTime="0 seconds").start()

        return measure_loop(url, "/back", start)


def bars(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """The job `ohlc` as users run it, table and all: from the newest value of a bar to the bar's coming back."""
    with live_lake(spark, folder / "bars-node") as (url, lake):

        def start() -> StreamingQuery:
            options = {"subjects": "/stocks/", "publish": "/bars/1s"}
            run = Run(spark=spark, config=lake.config, lake=lake, every_s=0.2, job="ohlc", options=options)
            JOBS["ohlc"].run(run)
            return run.queries[0]

        return measure_loop(url, "/bars/1s", start)


@contextmanager
def live_lake(spark: SparkSession, data: Path) -> Iterator[tuple[str, Lake]]:
    """A node of its own, its address, and a lake over its journal."""
    with running_node(data) as url:
        values: dict[str, Any] = {"journal.paths": (str(data),), "lake.path": str(data.with_suffix(".lake"))}
        values["node.url"] = url
        deadline = time.monotonic() + 30
        while not (data / "journal").is_dir() and time.monotonic() < deadline:
            time.sleep(0.05)
        yield url, Lake(spark, build_config({key: (value, "here") for key, value in values.items()}))


if __name__ == "__main__":
    main(sys.argv[1:] or [*GOALS])
