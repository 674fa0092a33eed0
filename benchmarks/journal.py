"""Measures the journal: acknowledgements from the disk against a bare C group-commit loop that writes the same bytes, round by round.

    python -m benchmarks.journal [--rounds 5] [--seconds 5] [--directory DIR]

Builds journal/examples/measure.rs and benchmarks/floor/commit.c. The result goes to benchmarks/results/journal/commit.json."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks/results/journal/commit.json"
MEASURE = ROOT / "target/release/examples/measure"
IN_FLIGHT = 64


def run(*command: object) -> dict[str, Any]:
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=300)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def build(folder: Path) -> Path:
    floor = folder / "commit"
    subprocess.run(["cc", "-O2", "-o", floor, ROOT / "benchmarks/floor/commit.c"], check=True)
    command = ["cargo", "build", "--quiet", "--locked", "--release", "-p", "godwit-journal", "--example", "measure"]
    subprocess.run(command, cwd=ROOT, check=True)
    return floor


def measure(rounds: int, seconds: int, directory: Path) -> dict[str, Any]:
    floor = build(directory)
    taken = []
    for _ in range(rounds):
        mine = run(MEASURE, "commit", directory, seconds)
        base = run(floor, directory / "floor", IN_FLIGHT, mine["group_bytes"], seconds)
        taken.append({"godwit": mine, "floor": base, "against_floor": mine["rows_s"] / base["rows_s"]})
        print(json.dumps(taken[-1]), flush=True)
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "sentence": "Messages of 200 bytes acknowledged from the disk, 64 in flight, against a bare C loop writing the same bytes",
        "command": f"python -m benchmarks.journal --rounds {rounds} --seconds {seconds}",
        "made": datetime.now(UTC).date().isoformat(),
        "commit": commit.stdout.strip(),
        "machine": {"system": platform.system(), "kernel": platform.release()},
        "rounds": taken,
        "against_floor": median(row["against_floor"] for row in taken),
        "write": run(MEASURE, "write", directory, 1_000_000),
        "restart": run(MEASURE, "restart", directory, 1_000_000),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.journal", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--directory", type=Path, help="on the disk that is measured")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
        outcome = measure(arguments.rounds, arguments.seconds, Path(folder))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(outcome, indent=1) + "\n", "utf-8")
    print(f"{outcome['against_floor']:.2f} of the floor; {RESULT.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
