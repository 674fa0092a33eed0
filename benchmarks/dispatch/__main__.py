"""Measures dispatch, one load after the other, each with a server of its own in a temporary data directory.

    python -m benchmarks.dispatch [--only NAME,…] [--receivers N] [--seconds S]

Writes benchmarks/results/dispatch/NAME.json for each load. What each load does is in its module.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from . import connected, fairness, feedback, large, latency, loads, mail, retention, webhooks
from .server import Options, measure_fsync

RESULTS = Path(__file__).parent.parent / "results" / "dispatch"
LOADS: dict[str, Callable[[Options], Awaitable[dict[str, Any]]]] = {
    "loads": loads.measure,
    "latency": latency.measure,
    "webhooks": webhooks.measure,
    "mail": mail.measure,
    "large": large.measure,
    "connected": connected.measure,
    "retention": retention.measure,
    "fairness": fairness.measure,
    "feedback": feedback.measure,
}


def run(name: str, receivers: int, seconds: float) -> dict[str, Any]:
    """Run one load; the result includes the conditions of the measurement."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(LOADS[name](Options(Path(folder), receivers, seconds)))
        fsync_ms = measure_fsync(Path(folder))
    rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.4g}"))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load average {load:.1f}"
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=False)
    return {"machine": machine, "commit": commit.stdout.strip(), "fsync_ms": round(fsync_ms, 2), **rounded}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME,…", default=",".join(LOADS), help=f"Loads: {', '.join(LOADS)}.")
    parser.add_argument("--receivers", type=int, default=0, help="Receivers; default: as many as each load says.")
    parser.add_argument("--seconds", type=float, default=10.0, help="How long the load `loads` accepts.")
    given = parser.parse_args()
    names = given.only.split(",")
    if unknown := [name for name in names if name not in LOADS]:
        parser.error(f"unknown load {unknown[0]!r}: expected {', '.join(LOADS)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in names:
        result = run(name, given.receivers, given.seconds)
        (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        print(json.dumps({name: result}, indent=1), flush=True)


if __name__ == "__main__":
    main()
