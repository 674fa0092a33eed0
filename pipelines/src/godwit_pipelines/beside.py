"""Several pieces of a job at once: while one is planned, another has its rows worked on. Owns threads; what they do is Spark's."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def do_beside(*works: Callable[[], object]) -> None:
    """Do all of them at the same time. Raises what one raised, of several the first given, when all have ended."""
    with ThreadPoolExecutor(len(works)) as threads:
        for under_way in [threads.submit(work) for work in works]:
            under_way.result()
