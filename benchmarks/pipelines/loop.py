"""The live loop: a journal that grows, Spark, and an endpoint that takes publishes and notes how old each message is.

The writer and the endpoint are a process of their own, so that they take nothing of Spark's driver; the endpoint answers as a
node does, so what is measured is the pipeline and one HTTP hop.
"""

from __future__ import annotations

import json
import multiprocessing
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks.pipelines.data import SCHEMA, message_batch
from godwit_pipelines.lake import Lake

RATE, FLUSHES = 2_000, 50
WARM_S, MEASURED_S = 15.0, 30.0


def measure_loop(spark: SparkSession, folder: Path, lake_at: Callable[[str], Lake]) -> dict[str, Any]:
    """Milliseconds from a message's time to its publish, of the messages after the warm-up."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=outside, args=(theirs, folder / "live"), daemon=True)
    process.start()
    lake = lake_at(ours.recv())
    rows = lake.journal_stream("messages").select(
        F.concat(F.lit("/back"), F.col("subject")).alias("subject"),
        F.unix_micros("time").cast("string").cast("binary").alias("content"),
        F.lit("json").alias("kind"),
    )
    query = (
        lake.publishing(rows)
        .option("checkpointLocation", lake.checkpoint("live"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    time.sleep(WARM_S)
    ours.send("measure")
    time.sleep(MEASURED_S)
    ours.send("end")
    ages: list[float] = ours.recv()
    query.stop()
    process.join(30)
    p50, p95, p99 = np.percentile(ages, [50, 95, 99])
    return {"p50_ms": round(p50), "p95_ms": round(p95), "p99_ms": round(p99), "messages": len(ages), "rate": RATE}


def outside(pipe: Connection, data: Path) -> None:
    """Everything that is not the pipeline: writes the journal, takes the publishes."""
    ages: list[float] = []

    class Endpoint(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            commands = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            now = time.time() * 1e6
            ages.extend((now - command["content"]) / 1000 for command in commands)
            body = json.dumps([{"ok": "published", "at": "1.1"} for _ in commands]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    done = threading.Event()
    writer = threading.Thread(target=grow, args=(data, done))
    writer.start()
    pipe.send(f"http://127.0.0.1:{server.server_address[1]}")
    pipe.recv()
    ages.clear()
    pipe.recv()
    pipe.send(list(ages))
    done.set()
    writer.join()


def grow(data: Path, done: threading.Event) -> None:
    """An open segment that grows by a batch every 20 ms."""
    folder = data / "journal" / "messages"
    folder.mkdir(parents=True)
    chance, offset = np.random.default_rng(2), 0
    with (folder / f"{0:020}.arrows").open("wb", buffering=0) as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
        due = time.monotonic()
        while not done.is_set():
            count = RATE // FLUSHES
            writer.write_batch(message_batch(offset, count, time.time_ns() // 1000, chance))
            offset += count
            due += 1 / FLUSHES
            time.sleep(max(0.0, due - time.monotonic()))
