"""The filter on the error stream of Java and its workers: everything passes except warnings that a user cannot act on."""

from __future__ import annotations

import pytest

from godwit_pipelines.quiet import sift

HEAD = b"Traceback (most recent call last):\n"
DAEMON = b'  File "/lib/pyspark/daemon.py", line 264, in manager\n'
OTHER = b'  File "/lib/pyspark/worker.py", line 1, in main\n'


@pytest.mark.parametrize(
    "end", [b"EOFError\n", b"BrokenPipeError: [Errno 32] Broken pipe\n", b"ConnectionResetError\n"]
)
def test_a_worker_whose_connection_spark_closed_is_not_heard(end: bytes) -> None:
    said = [b"before\n", HEAD, DAEMON, b"    worker()\n", end, b"after\n"]
    assert list(sift(said)) == [b"before\n", b"after\n"]


@pytest.mark.parametrize(
    "said",
    [
        [HEAD, DAEMON, b"    worker()\n", b"MemoryError\n", b"after\n"],
        [HEAD, OTHER, b"    worker()\n", b"EOFError\n"],
        [HEAD, DAEMON, b"    worker()\n"],
        [HEAD],
        [b"12:00:00 ERROR Some: thing\n", b"  of two lines\n"],
    ],
    ids=["another error", "another place", "cut", "cut at once", "no trace"],
)
def test_every_other_trace_passes_whole(said: list[bytes]) -> None:
    assert list(sift(said)) == said
