"""Measures the journal: acknowledgements from the disk, coming back with what is kept, and what writing down adds to a fan-out.

    python -m benchmarks.journal [commit] [restart] [fanout] [--rounds 5] [--seconds 5] [--directory DIR]

commit: 64 messages of 200 bytes in flight, through a node (of four publishers, and of one) and to the journal alone, against a bare C
loop that writes the same bytes and syncs them with the same call (benchmarks/baseline/commit.c), round by round. restart: a node with
1,000,000 kept messages, killed and stopped in order, until it has answered for them. fanout: 1 to 1,000 with the journal and without.
Results go to benchmarks/results/journal, and from there to the page."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from godwit.bench.generator import run_plan
from godwit.bench.loads import LOADS
from godwit.bench.result import describe_machine, find_commit
from godwit.bench.rounds import run_rounds
from godwit.bench.shape import Shape, connect, publish, steps_of
from godwit.bench.targets import TARGETS, BenchFailed, Order, Running, start_target

from .page import write_page

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results"
MEASURE = ROOT / "target/release/examples/measure"
IN_FLIGHT = 64
CONTENT_BYTES = 200
KEPT = 1_000_000
SUBJECTS = 1_000

Found = dict[str, Any]


def run(*command: object) -> Found:
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=300)
    found: Found = json.loads(done.stdout)
    return found


def build(folder: Path) -> Path:
    baseline = folder / "commit"
    subprocess.run(["cc", "-O2", "-o", baseline, ROOT / "benchmarks/baseline/commit.c"], check=True)
    command = ["cargo", "build", "--quiet", "--locked", "--release", "-p", "godwit-journal", "--example", "measure"]
    subprocess.run(command, cwd=ROOT, check=True)
    return baseline


def describe_run() -> Found:
    made = datetime.now(UTC).date().isoformat()
    return {"made": made, "commit": find_commit(), "machine": describe_machine()}


def load_node(running: Running, shape: Shape, dialect: str) -> Found:
    """Run a shape's steps against a node, on any cores."""
    plan = {**shape.plan(), "dialect": dialect, "address": running.address, "pids": running.pids}
    result = run_plan(plan, lambda text: None)
    if result["fault"] is not None or not result["is_exact"]:
        raise BenchFailed(f"{dialect}: {result['fault'] or 'not exact'}")
    return steps_of(result)


def commit_through_node(directory: Path, messages: int, publishers: int) -> Found:
    steps = [connect(), publish("warm", 2_000, in_flight=IN_FLIGHT), publish("commit", messages, in_flight=IN_FLIGHT)]
    shape = Shape(0, 4, steps, publishers=publishers, is_acked=True, content_bytes=CONTENT_BYTES)
    with (
        tempfile.TemporaryDirectory(dir=directory) as data,
        start_target(TARGETS["godwit-disk"], Order(data=Path(data)), None) as running,
    ):
        step = load_node(running, shape, "godwit-disk")["commit"]
    return {"rows_s": round(messages / step["seconds"])}


def measure_commit(rounds: int, seconds: int, directory: Path) -> Found:
    baseline = build(directory)
    taken: list[Found] = []
    for _ in range(rounds):
        mine = run(MEASURE, "commit", directory, seconds)
        base = run(baseline, directory / "baseline", IN_FLIGHT, mine["group_bytes"], seconds)
        messages = int(base["rows_s"] * seconds * 0.7)
        row = {
            "journal": mine,
            "node": commit_through_node(directory, messages, publishers=4),
            "node_of_one": commit_through_node(directory, messages, publishers=1),
        }
        ratios = {of: found["rows_s"] / base["rows_s"] for of, found in row.items()}
        taken.append({**row, "baseline": base, "against_baseline": ratios})
        print(json.dumps(taken[-1]), flush=True)
    return {
        "sentence": "Messages of 200 bytes acknowledged from the disk, 64 in flight, against a bare C loop writing the same bytes",
        "rounds": taken,
        "against_baseline": {
            of: round(median(row["against_baseline"][of] for row in taken), 3)
            for of in ("journal", "node", "node_of_one")
        },
        "write": run(MEASURE, "write", directory, KEPT),
    }


def measure_restart(directory: Path) -> Found:
    """Fill a journal with a node that is then killed; then time the start of a node with it, and the start after an orderly stop."""
    found: Found = {
        "sentence": "From the start of the process until it has answered for 1,000,000 kept messages",
        "messages": KEPT,
    }
    target = TARGETS["godwit-journal"]
    limits = {"log_messages_max": KEPT // SUBJECTS, "log_age_ms_max": 3_600_000, "logs_bytes_max": 4 << 30}
    with tempfile.TemporaryDirectory(dir=directory) as data:
        order = Order(data=Path(data), shards=2, limits=limits)
        steps = [connect(), publish("fill", KEPT, in_flight=2_000)]
        shape = Shape(0, SUBJECTS, steps, publishers=4, is_acked=True, content_bytes=CONTENT_BYTES)
        with start_target(target, replace(order, is_killed=True), None) as running:
            load_node(running, shape, "godwit-binary")
        found["killed_s"] = time_start(order)
        found["stopped_s"] = time_start(order)
        found["bytes"] = sum(file.stat().st_size for file in Path(data).rglob("*") if file.is_file())
    with tempfile.TemporaryDirectory(dir=directory) as data:
        found["empty_s"] = time_start(replace(order, data=Path(data)), kept=0)
    return found


def time_start(order: Order, kept: int = KEPT // SUBJECTS) -> float:
    began = time.monotonic()
    with start_target(TARGETS["godwit-journal"], order, None) as running:
        for subject in (0, SUBJECTS - 1):
            found = count_messages(f"http://{running.address}/v1/messages?subject=/bench/{subject}")
            if found != kept:
                raise BenchFailed(f"/bench/{subject} has {found} messages of {kept}")
        return round(time.monotonic() - began, 2)


def count_messages(address: str) -> int:
    """The number of messages of a subject, page by page."""
    count, place = 0, f"&last={KEPT}"
    while True:
        with urllib.request.urlopen(f"{address}{place}&limit=1000", timeout=60) as answer:
            messages = [item for item in json.load(answer) if "message" in item]
        if not messages:
            return count
        count, place = count + len(messages), f"&after={messages[-1]['at']}"


def measure_fanout(rounds: int, driver: str) -> Found:
    targets = [TARGETS["godwit"], TARGETS["godwit-journal"]]
    measured = run_rounds(LOADS["fanout"], targets, rounds, driver, 1.0, lambda text: None)
    figures = {name: [row["cpu_us_per_delivery"] for row in found.figures] for name, found in measured.items()}
    ratios = [mine / base for mine, base in zip(figures["godwit-journal"], figures["godwit"], strict=True)]
    return {
        "sentence": "1 to 1,000 at 25 messages a second: server CPU a delivered message, with the journal over without",
        "driver": driver,
        "cpu_us_per_delivery": figures,
        "ratios": ratios,
        "against_without": round(median(ratios), 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="benchmarks.journal", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "what", nargs="*", choices=["commit", "restart", "fanout", []], help="all of them where none is named"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--driver", default="io_uring")
    parser.add_argument("--directory", type=Path, help="on the disk that is measured")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        measures: dict[str, Callable[[], Found]] = {
            "commit": lambda: measure_commit(arguments.rounds, arguments.seconds, Path(folder)),
            "restart": lambda: measure_restart(Path(folder)),
            "fanout": lambda: measure_fanout(arguments.rounds, arguments.driver),
        }
        for what in arguments.what or measures:
            outcome = {**measures[what](), "command": f"python -m benchmarks.journal {what}", **describe_run()}
            file = RESULTS / "journal" / f"{what}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(outcome, indent=1) + "\n", "utf-8")
            summary = {
                name: value
                for name, value in outcome.items()
                if isinstance(value, (int, float, dict)) and name != "machine"
            }
            print(f"{what}: {json.dumps(summary)}; {file.relative_to(ROOT)}")
    write_page(RESULTS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
