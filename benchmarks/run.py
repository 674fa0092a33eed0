"""Measures everything: every load on both drivers, against the baseline and the rivals found here; then charts and the page.

    python -m benchmarks.run [--only LOAD,LOAD] [--rounds 3] [--size 1.0] [--no-rivals] [--results DIRECTORY]

A result replaces that load's last one in benchmarks/results. A load that fails is said at the end, and the exit code is 1."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from godwit.bench.command import choose_targets, describe_outcome, measure
from godwit.bench.loads import LOADS
from godwit.bench.result import write_outcome
from godwit.bench.targets import BenchFailed

from .page import write_page

RESULTS = Path(__file__).parent / "results"

AGAINST = {
    "idle": "godwit-readiness,godwit-tls,baseline,rivals",
    "idle-100k": "",
    "own": "",
    "connect": "baseline,godwit-readiness,godwit-tls,rivals",
    "fanout": "baseline,godwit-readiness,godwit-http,godwit-tls,rivals",
    "journal": "godwit-journal",
    "mqtt": "godwit-mqtt,godwit-mqtt-qos1,mosquitto-qos1,nats-mqtt-qos1",
    "mqtt-idle": "godwit-mqtt,mosquitto",
    "many": "baseline,godwit-readiness,rivals",
    "saturated": "baseline-merge,godwit-readiness,rivals",
    "publish": "godwit-binary,godwit-http,godwit-readiness,baseline",
    "post": "godwit-http",
    "resume": "godwit-readiness",
    "latency": "baseline,godwit-readiness,mosquitto,nats",
    "slow": "",
    "million": "",
}
"""Targets in addition to this node on io_uring. nchan cannot run the latency load's 1,000 publishers in one process."""

ROUNDS_OTHERS = 3
ROUNDS = {"journal": 5, "latency": 5}
"""Loads with more rounds than others, because a small difference is measured or single rounds differ much."""

ON_DEMAND = {"million"}
"""Loads that run only if they are named: they need ten gigabytes and six minutes."""


def main() -> int:
    arguments = parse_arguments()
    failures = []
    for name in arguments.only.split(",") if arguments.only else [load for load in AGAINST if load not in ON_DEMAND]:
        against = AGAINST[name].replace("rivals", "") if arguments.no_rivals else AGAINST[name]
        try:
            choose_targets(LOADS[name], against)
            rounds = arguments.rounds or ROUNDS.get(name, ROUNDS_OTHERS)
            outcome = measure(LOADS[name], "godwit", against, rounds, arguments.driver, arguments.size)
        except BenchFailed as failure:
            failures.append(str(failure))
            print(f"failed: {failure}", file=sys.stderr)
            continue
        print(describe_outcome(outcome), flush=True)
        write_outcome(outcome, arguments.results / f"{name}.json")
    if arguments.results == RESULTS:
        write_page(RESULTS)
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failures else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks.run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", default="", help="these loads, with commas")
    parser.add_argument("--rounds", type=int, default=0, help="of each load; default: 3, of journal and latency 5")
    parser.add_argument("--size", type=float, default=1.0, help="share of the full size")
    parser.add_argument("--driver", default="io_uring", help="of the node first named")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
