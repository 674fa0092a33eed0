"""Checks what Spark would otherwise wait for silently: servers that accept connections, before it starts, and executors while it runs.

Owns reading `HOST:PORT,…`. Whether to wait longer is the user's decision.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .errors import ConfigInvalid

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMEOUT_S = 5.0
_LOOK_S = 2.0
_PATIENCE_S = 20.0
"""Executors take some seconds to come, and may be replaced without anybody noticing."""


def find_unreachable(key: str, servers: str, timeout_s: float = TIMEOUT_S) -> str:
    """Why none of `HOST:PORT,…` accepts a connection; empty if one does. Raises ConfigInvalid for text that is not an address."""
    failures = []
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65_536:
            raise ConfigInvalid(key, server, "must be HOST:PORT", hint="separate several with commas")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout_s).close()
            return ""
        except OSError as error:
            failures.append(f"{server.strip()}: {error.strerror or error}")
    return "; ".join(failures)


@contextmanager
def watching_executors(spark: SparkSession, say: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, print a line if no executor is available for a while, and another when one is."""
    master = spark.sparkContext.master or "local"
    if master.startswith("local"):
        yield
        return
    is_over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, master, say, is_over), name="executors", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()  # it looks at Spark for the last time; nobody waits for an answer that may not come


def _watch(spark: SparkSession, master: str, say: Callable[[str], None], is_over: threading.Event) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types

    alone_s, is_reported = 0.0, False
    try:
        while not is_over.wait(_LOOK_S):
            if count_executors(spark):
                if is_reported:
                    say("an executor is available again: the job continues")
                alone_s, is_reported = 0.0, False
                continue
            alone_s += _LOOK_S
            if alone_s >= _PATIENCE_S and not is_reported:
                say(f"{master} has had no executor for this job for {alone_s:g} s; it waits for one; stop it with ^C")
                is_reported = True
    except (Py4JError, OSError):
        return  # Spark has ended


def count_executors(spark: SparkSession) -> int:
    """Number of processes that work for this session, without the driver."""
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1
