"""The process uses memory, its CPU time only grows, and the reading thread has low priority."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from godwit.monitoring.process import NICENESS, ProcessMeter, stand_back


def test_a_process_uses_memory_and_time() -> None:
    meter = ProcessMeter()
    before, after = meter.read(), meter.read()
    assert before["memory_bytes"] > 1_000_000
    assert 0 < before["cpu_seconds"] <= after["cpu_seconds"]


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a niceness of their own on Linux alone")
def test_a_thread_that_stands_back_is_nicer_and_the_others_are_not() -> None:
    def read() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = read()
    with ThreadPoolExecutor(1, initializer=stand_back) as pool:
        assert pool.submit(read).result() == min(before + NICENESS, 19)
    assert read() == before
