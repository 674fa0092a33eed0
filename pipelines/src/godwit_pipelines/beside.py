"""Runs several parts of a job at the same time: while one is planned, the rows of another are processed. Owns the threads only."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession


def do_beside(spark: SparkSession, *works: Callable[[], object]) -> None:
    """Run all functions at the same time. When all have ended, raises the error of the first given one that failed."""
    with threads_of(spark, len(works)) as threads:
        for under_way in [threads.submit(work) for work in works]:
            under_way.result()


def threads_of(spark: SparkSession, count: int) -> ThreadPoolExecutor:
    """A pool of threads that use this session."""
    return ThreadPoolExecutor(count, initializer=lambda: take(spark))


def take(spark: SparkSession) -> None:
    """Make this the session of the thread. When a frame is written, Spark looks up our formats only there."""
    spark._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
