"""Compares `godwit plan` with `godwit bench`: measures this machine, runs some workloads, and stores the predicted and the
measured value of each metric.

    python -m benchmarks.planning [--takes 3] [--add]        writes benchmarks/results/plan/checks.json

A machine whose host gives it more at one time than at another is measured before the workloads and after them, and what both
predict is averaged. Of several takes the median of each figure is shown, so that one disturbance is not the result. `--add` puts
takes beside those that are kept of the same commit: a take is three minutes that want the machine for themselves.
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
from godwit.plan.check import NEAR, Compared, compare, play
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


def take() -> dict[str, Any]:
    """Measure, run the workloads, and measure again; the outcome as a JSON value."""
    before = measure_machine("auto", show_progress)
    played = {name: play(workload, before, show_progress) for name, workload in WORKLOADS.items()}
    after = measure_machine("auto", show_progress)
    show_progress("")
    compared = {
        name: [
            dataclasses.asdict(dataclasses.replace(one, predicted=(one.predicted + other.predicted) / 2))
            for one, other in zip(
                *(compare(WORKLOADS[name], machine, result) for machine in (before, after)), strict=True
            )
        ]
        for name, result in played.items()
    }
    return {"figures": before.describe(), "figures_after": after.describe(), "compared": compared}


def describe_takes(takes: list[dict[str, Any]]) -> dict[str, Any]:
    """The stored result: every take, and their medians."""
    played = {name: [[Compared(**one) for one in each["compared"][name]] for each in takes] for name in WORKLOADS}
    return {
        "commit": find_commit(),
        "machine": describe_machine(),
        "takes": len(takes),
        "figures": [each["figures"] for each in takes],
        "figures_after": [each["figures_after"] for each in takes],
        "workloads": {
            name: {"workload": dataclasses.asdict(WORKLOADS[name]), "compared": settle(found)}
            for name, found in played.items()
        },
        "each": [each["compared"] for each in takes],
    }


def read_takes(result: Path) -> list[dict[str, Any]]:
    """The stored takes of this commit; empty if the file is of another commit or missing."""
    if not result.exists():
        return []
    kept = json.loads(result.read_text())
    if kept["commit"] != find_commit() or any(set(each) != set(WORKLOADS) for each in kept.get("each", [])):
        return []
    found = zip(kept["figures"], kept["figures_after"], kept["each"], strict=True)
    return [{"figures": before, "figures_after": after, "compared": compared} for before, after, compared in found]


def settle(takes: list[list[Compared]]) -> list[dict[str, Any]]:
    """The median of each metric over the takes that have it."""
    names = dict.fromkeys(one.name.split(",")[0] for found in takes for one in found)
    settled = []
    for name in names:
        seen = [one for found in takes for one in found if one.name.split(",")[0] == name]
        ratios = sorted(one.ratio for one in seen)
        one = min(seen, key=lambda one: abs(one.ratio - statistics.median(ratios)))
        settled.append({**dataclasses.asdict(one), "ratio": one.ratio, "ratios": ratios, "takes": len(seen)})
    return settled


def describe_checks(value: dict[str, Any]) -> list[str]:
    """The section of the page, in Markdown."""
    rows = [(name, one) for name, found in value["workloads"].items() for one in found["compared"]]
    near = sum(abs(one["ratio"] - 1) <= NEAR for _, one in rows)
    lines = [
        "## Predicted and measured",
        "",
        f"`godwit plan` measured this machine in {value['figures'][0]['seconds']:.0f} s and predicted these workloads on one core. They",
        "were then run as by `godwit plan --check`, and the machine was measured again; the prediction is the mean of both measurements.",
        f"{near} of {len(rows)} figures are within {NEAR:.0%}. Commit {value['commit']}, median of {value['takes']}.",
        value.get("note", ""),
        "",
        "| workload | figure | predicted | measured | ratio | of each take |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in rows:
        cells = [f"{one[side]:,.3g}" if one[side] < 1e4 else f"{one[side]:,.0f}" for side in ("predicted", "measured")]
        ratio = f"{one['ratio']:.2f}" if abs(one["ratio"] - 1) <= NEAR else f"**{one['ratio']:.2f}**"
        ratios = one.get("ratios", [])
        spread = f"{ratios[0]:.2f} – {ratios[-1]:.2f}" if len(ratios) > 1 else ""
        lines.append(f"| {name} | {one['name']}, {one['unit']} | {cells[0]} | {cells[1]} | {ratio} | {spread} |")
    return [*lines, ""]


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.planning", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--takes", type=int, default=1)
    parser.add_argument("--add", action="store_true", help="beside the takes that are kept of this commit")
    parser.add_argument("--result", type=Path, default=RESULT)
    arguments = parser.parse_args()
    takes = read_takes(arguments.result) if arguments.add else []
    arguments.result.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(arguments.takes):
        takes.append(take())  # each is kept as it comes: what stops the next one costs that one alone
        value = describe_takes(takes)
        arguments.result.write_text(json.dumps(value, indent=1) + "\n")
    print("\n".join(describe_checks(value)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
