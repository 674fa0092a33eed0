"""Pieces of a job that are done at once."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.beside import do_beside


def test_all_are_under_way_at_once(spark: SparkSession) -> None:
    both = threading.Barrier(2)
    do_beside(spark, lambda: both.wait(30), lambda: both.wait(30))


def test_what_one_raises_is_raised_when_the_others_have_ended(spark: SparkSession) -> None:
    has_failed, ended = threading.Event(), []

    def fail() -> None:
        has_failed.set()
        raise OSError("the disk is full")

    def go_on() -> None:
        assert has_failed.wait(30)
        ended.append(True)

    with pytest.raises(OSError, match="the disk is full"):
        do_beside(spark, fail, go_on)
    assert ended == [True]
