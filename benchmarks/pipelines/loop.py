"""The live loop, end to end: a real node accepts messages and writes its journal, Spark reads it and publishes results, and
a subscriber records the age of each message.

Publisher and subscriber run in a process of their own, so that they do not slow down Spark's driver. Every message
contains the time at which it was published; the results contain it too.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from godwit_pipelines.publish.commands import Command
from godwit_pipelines.publish.rest import Node

ROOT = Path(__file__).resolve().parents[2]
RATE, REQUESTS, SUBJECTS = 2_000, 50, 1_000
WARM_S, MEASURED_S, START_S = 20.0, 30.0, 60.0


@contextmanager
def running_node(data: Path) -> Iterator[str]:
    """A node with a journal, on ports of its own; gives its client address."""
    words = [ROOT / ".venv/bin/godwit", "serve", "--data", data, "--client", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    process = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True, cwd=data.parent)
    try:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("listening "))
        yield "http://" + dict(word.split("=", 1) for word in line.split()[1:])["client"]
    finally:
        process.terminate()
        process.wait(START_S)


def measure_loop(url: str, back: str, start: Callable[[], Any]) -> dict[str, Any]:
    """Milliseconds from publishing a message until Spark's result of it is received below `back`, after the warm-up. `start`
    begins the query once messages arrive, and returns it.
    """
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=outside, args=(theirs, url, back), daemon=True)
    process.start()
    ours.recv()
    query = start()
    time.sleep(WARM_S)
    ours.send("measure")
    time.sleep(MEASURED_S)
    ours.send("end")
    ages: list[float] = ours.recv()
    query.stop()
    process.join(30)
    p50, p95, p99 = np.percentile(ages, [50, 95, 99])
    return {"p50_ms": round(p50), "p95_ms": round(p95), "p99_ms": round(p99), "messages": len(ages), "rate": RATE}


def outside(pipe: Connection, url: str, back: str) -> None:
    """The process outside of pipeline and node: publishes, and receives the results."""
    ages: list[float] = []
    done = threading.Event()
    threading.Thread(target=listen, args=(url, back, ages), daemon=True).start()
    publisher = threading.Thread(target=publish, args=(url, done))
    publisher.start()
    pipe.send("running")
    pipe.recv()
    ages.clear()
    pipe.recv()
    pipe.send(list(ages))
    done.set()
    publisher.join()


def publish(url: str, done: threading.Event) -> None:
    """Messages at a pace, some every 20 ms; each is the microsecond at which it was made."""
    node, at, due = Node(url), 0, time.monotonic()
    while not done.is_set():
        commands = []
        for number in range(at, at + RATE // REQUESTS):
            subject = f"/stocks/{number % SUBJECTS}"
            commands.append(Command(f'{{"publish":"{subject}","content":{time.time_ns() // 1000}}}', subject))
        node.send(commands)
        at += len(commands)
        due += 1 / REQUESTS
        time.sleep(max(0.0, due - time.monotonic()))
    node.close()


def listen(url: str, back: str, ages: list[float]) -> None:
    """The events of everything below `back`, as they come."""
    parts = urlsplit(url)
    asking = http.client.HTTPConnection(parts.hostname or "", parts.port)
    asking.request("GET", f"/v1/stream?subject={back}/**")
    answer = asking.getresponse()
    while line := answer.readline():
        if line.startswith(b"data:"):
            content = json.loads(line[5:]).get("content")
            if content is not None:
                made = content["close"] if isinstance(content, dict) else content
                ages.append((time.time_ns() / 1000 - made) / 1000)
