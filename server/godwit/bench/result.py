"""A load's outcome as data: metrics, machine, settings, medians and ratios to the baseline. Without host names and paths,
because results are published.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import __version__
from .loads import Load
from .rounds import Measured
from .targets import REPOSITORY

Outcome = dict[str, Any]

# Git pathspecs of what a measurement depends on. Results are left out: a benchmark rewrites its own between two takes.
MEASURED = (
    *("core", "journal", "engine", "bridge", "loadgen", "server", "clients", "pipelines", "protocol"),
    *("Cargo.toml", "Cargo.lock", "benchmarks", ":(exclude)benchmarks/results"),
)


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory, kernel."""
    model = platform.processor()
    try:
        text = Path("/proc/cpuinfo").read_text()
        model = next((line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")), model)
        memory = int(Path("/proc/meminfo").read_text().split()[1]) // 1024
    except OSError:
        memory = 0
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_mb": memory,
        "system": platform.system(),
        "kernel": platform.release().split("-")[0],
    }


def find_commit() -> str:
    """The measured commit, with `+` if files differ from it; the version if there is no repository."""
    git = ["git", "-C", str(REPOSITORY)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        files = ["status", "--porcelain", "--untracked-files=no", "--", *MEASURED]
        status = subprocess.run([*git, *files], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return __version__
    return commit.stdout.strip() + ("+" if status.stdout.strip() else "")


def build_outcome(load: Load, measured: Mapping[str, Measured], driver: str, size: float) -> Outcome:
    """The JSON value of one load."""
    baseline = next(
        (name for name in ("baseline", "baseline-merge") if name in load.against and name in measured), None
    )
    return {
        "load": load.name,
        "sentence": load.sentence,
        "made": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": find_commit(),
        "machine": describe_machine(),
        "settings": {
            "driver": driver,
            "size": size,
            "shards": max(shape.shards or load.shards for shape in load.shapes(size)),
            "cpu": "sum of /proc/PID/task/*/schedstat of the server's processes",
            "memory": "PSS of the server's processes",
            "runs": [shape.plan() for shape in load.shapes(size)],
        },
        "servers": {name: _build_server(found) for name, found in measured.items()},
        "against_baseline": _build_ratios(measured, baseline) if baseline else {},
    }


def _build_server(measured: Measured) -> dict[str, Any]:
    names = measured.figures[0]
    return {
        "median": {name: statistics.median(figures[name] for figures in measured.figures) for name in names},
        "rounds": measured.figures,
        "rounds_retaken": measured.retaken,
        "runs": measured.runs,
    }


def _build_ratios(measured: Mapping[str, Measured], baseline: str) -> dict[str, dict[str, float]]:
    """The median of each metric's ratios to the baseline in the same round."""
    base = measured[baseline].figures
    return {
        name: {
            figure: statistics.median(
                mine[figure] / baselines[figure]
                for mine, baselines in zip(found.figures, base, strict=True)
                if baselines.get(figure)
            )
            for figure in found.figures[0]
            if all(baselines.get(figure) for baselines in base)
        }
        for name, found in measured.items()
        if name != baseline
    }


def write_outcome(outcome: Outcome, file: Path) -> None:
    """Write the outcome as JSON; short values are on one line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(_round(outcome), indent=1) + "\n")


def _round(value: Any) -> Any:
    """Round floats to five significant digits."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _round(inner) for key, inner in value.items()}
    return [_round(inner) for inner in value] if isinstance(value, list) else value
