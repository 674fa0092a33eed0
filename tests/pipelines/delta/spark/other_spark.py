"""Delta on Spark, in a process of its own environment: reads and writes tables as it is asked, a line of JSON each.

Values of times and dates cross as whole numbers, so that neither side's clock or calendar has a say. Imports nothing of the package
that it is held against.
"""

from __future__ import annotations

import json
import os
import sys
from glob import glob
from typing import Any

NUMBERS = {
    "date": "unix_date({})",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": "unix_micros(cast({} as timestamp))",
}
"""How a value becomes a number."""
VALUES = {
    "date": "date_from_unix_date(cast({} as int))",
    "timestamp": "timestamp_micros({})",
    "timestamp_ntz": "cast(timestamp_micros({}) as timestamp_ntz)",
}
"""And how it becomes a value again."""


def crossing(kind: str) -> str:
    """The type in which a value of another type crosses."""
    return "bigint" if kind in NUMBERS else "string" if kind.startswith("decimal") else kind


def main(jars: str) -> None:
    from pyspark.sql import SparkSession

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Delta prints what it removes

    builder = SparkSession.builder.master("local[1]").config("spark.jars", ",".join(glob(f"{jars}/*.jar")))
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def read(path: str, kind: str) -> list[Any]:
        shown = NUMBERS.get(kind, "cast({} as string)" if kind.startswith("decimal") else "{}").format("k")
        rows = spark.read.format("delta").load(path).selectExpr(f"{shown} AS k", "v").orderBy("v")
        return [[row["k"], row["v"]] for row in rows.collect()]

    def write(path: str, kind: str, rows: list[Any], partitions: list[str]) -> None:
        frame = spark.createDataFrame([tuple(row) for row in rows], f"k {crossing(kind)}, v bigint")
        made = VALUES.get(kind, f"cast({{}} as {kind})").format("k")
        written = frame.selectExpr(f"{made} AS k", "v").write.format("delta").mode("append")
        written.partitionBy(*partitions).save(path)

    def run(statement: str) -> None:
        spark.sql(statement).collect()

    print("ready", file=answers, flush=True)
    commands = {"read": read, "write": write, "run": run}
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        try:
            answer = {"answer": commands[command](*arguments)}
        except Exception as error:  # whatever it is, the test that asked fails with it
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
