"""Several pieces of a job at once: while one is planned, another has its rows worked on. Owns threads; what they do is Spark's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession


def do_beside(spark: SparkSession, *works: Callable[[], object]) -> None:
    """Do all of them at the same time. Raises what one raised, of several the first given, when all have ended."""
    with threads_of(spark, len(works)) as threads:
        for under_way in [threads.submit(work) for work in works]:
            under_way.result()


def threads_of(spark: SparkSession, count: int) -> ThreadPoolExecutor:
    """Threads that have the session."""
    return ThreadPoolExecutor(count, initializer=lambda: take(spark))


def take(spark: SparkSession) -> None:
    """Make it the session of this thread: where a frame is written Spark looks up our formats in that, and in no other."""
    spark._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
