"""Holds `godwit plan` against `godwit bench`: measures this machine, plays some workloads, keeps both sides of each figure.

    python -m benchmarks.planning [--takes 1]        writes benchmarks/results/plan/checks.json

Of several takes the median of each figure is kept, predicted and measured, so that one disturbance is not the result.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from godwit.bench.command import show_progress
from godwit.bench.result import describe_machine, find_commit
from godwit.plan.check import NEAR, Compared, check_prediction
from godwit.plan.measure import measure_machine
from godwit.plan.workload import Workload

RESULT = Path(__file__).parent / "results" / "plan" / "checks.json"

WORKLOADS = {
    "1 to 1,000, 50 messages a second": Workload(connections=1_000, subjects=1, messages_per_second=50),
    "50 subjects × 100, 400 bytes, 200 a second": Workload(
        connections=5_000, subjects=50, messages_per_second=200, message_bytes=400
    ),
    "2,000 subjects × 1, 10,000 a second": Workload(connections=2_000, subjects=2_000, messages_per_second=10_000),
    "15 subjects × 1,000, 2,000 bytes, 20 a second": Workload(
        connections=15_000, subjects=15, messages_per_second=20, message_bytes=2_000
    ),
    "20 subjects × 100 by TLS, 1,000 bytes, 100 a second": Workload(
        connections=2_000, subjects=20, messages_per_second=100, message_bytes=1_000, tls=True
    ),
}


def take(takes: int) -> dict[str, Any]:
    """Measures and plays so many times; the outcome as a JSON value."""
    played: dict[str, list[list[Compared]]] = {name: [] for name in WORKLOADS}
    machines = []
    for _ in range(takes):
        machine = measure_machine("auto", show_progress)
        machines.append(machine.describe())
        for name, workload in WORKLOADS.items():
            played[name].append(check_prediction(workload, machine, show_progress))
    show_progress("")
    return {
        "commit": find_commit(),
        "machine": describe_machine(),
        "takes": takes,
        "figures": machines,
        "workloads": {
            name: {"workload": dataclasses.asdict(WORKLOADS[name]), "compared": settle(found)}
            for name, found in played.items()
        },
    }


def settle(takes: list[list[Compared]]) -> list[dict[str, Any]]:
    """The median of each figure over the takes in which it was seen."""
    names = dict.fromkeys(one.name.split(",")[0] for found in takes for one in found)
    settled = []
    for name in names:
        seen = [one for found in takes for one in found if one.name.split(",")[0] == name]
        ratio = statistics.median(one.ratio for one in seen)
        one = min(seen, key=lambda one: abs(one.ratio - ratio))
        settled.append({**dataclasses.asdict(one), "ratio": one.ratio, "takes": len(seen)})
    return settled


def describe_checks(value: dict[str, Any]) -> list[str]:
    """The section of the page, in Markdown."""
    rows = [(name, one) for name, found in value["workloads"].items() for one in found["compared"]]
    near = sum(abs(one["ratio"] - 1) <= NEAR for _, one in rows)
    lines = [
        "## Predicted and measured",
        "",
        f"`godwit plan` measured this machine in {value['figures'][0]['seconds']:.0f} s and predicted what these workloads take of",
        "one core; then `godwit plan --check` played them with the generator of `godwit bench`.",
        f"{near} of {len(rows)} figures are within {NEAR:.0%}. Commit {value['commit']}, median of {value['takes']}.",
        value.get("note", ""),
        "",
        "| workload | figure | predicted | measured | ratio |",
        "|---|---|---|---|---|",
    ]
    for name, one in rows:
        cells = [f"{one[side]:,.3g}" if one[side] < 1e4 else f"{one[side]:,.0f}" for side in ("predicted", "measured")]
        ratio = f"{one['ratio']:.2f}" if abs(one["ratio"] - 1) <= NEAR else f"**{one['ratio']:.2f}**"
        lines.append(f"| {name} | {one['name']}, {one['unit']} | {cells[0]} | {cells[1]} | {ratio} |")
    return [*lines, ""]


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.planning", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--takes", type=int, default=1)
    parser.add_argument("--result", type=Path, default=RESULT)
    arguments = parser.parse_args()
    value = take(arguments.takes)
    arguments.result.parent.mkdir(parents=True, exist_ok=True)
    arguments.result.write_text(json.dumps(value, indent=1) + "\n")
    print("\n".join(describe_checks(value)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
