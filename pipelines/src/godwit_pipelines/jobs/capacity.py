"""`capacity`: what a node's work costs, when load is highest, and how many nodes a given load needs."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ConfigInvalid
from ..transforms.capacity import fit_costs, forecast, loads, nodes_needed
from ..words import counted
from .job import Job, Outcome, Run
from .options import number_of

_LOAD = ("connections", "deliveries")
_NODE = ("cores", "memory_gb")
_COUNT_MAX = 1_000_000_000


def run(run: Run) -> Outcome:
    """Fit a model to the statistics, and answer --option connections=… deliveries=… cores=… memory_gb=…"""
    minutes = loads(run.lake.read("bronze.stats")).persist()
    try:
        run.lake.replace("gold.capacity", fit_costs(minutes))
        run.lake.replace("gold.forecast", forecast(minutes))
    finally:
        minutes.unpersist()
    costs = run.lake.read("gold.capacity")
    if not all(name in run.options for name in _LOAD):
        return Outcome(f"{counted(costs.count(), 'node')} fitted; see gold.capacity and gold.forecast")
    wanted = nodes_needed(costs, *load_of(run.options), *node_of(run.options))
    lines = [
        f"{row.node}: {counted(row.nodes, 'node')} like it"
        if row.by_memory is not None and row.by_cpu is not None
        else f"{row.node}: its load did not vary enough to compute the cost of a connection and a delivery"
        for row in wanted.collect()
    ]
    return Outcome("\n".join(lines) or "no statistics have landed")


def load_of(options: Mapping[str, str]) -> tuple[int, int]:
    """Connections, and deliveries per second."""
    connections, deliveries = (int(number_of(options, name, 0, 0, _COUNT_MAX)) for name in _LOAD)
    return connections, deliveries


def node_of(options: Mapping[str, str]) -> tuple[float, int]:
    """Cores, and bytes of memory."""
    cores = number_of(options, "cores", 2.0, 0.01, 1e5)
    return cores, int(number_of(options, "memory_gb", 4.0, 0.01, 1e6) * 2**30)


def check(options: Mapping[str, str]) -> None:
    """Raises ConfigInvalid for a load or node that is not valid, or for only one half of a load: connections and deliveries are both
    needed.
    """
    load_of(options)
    node_of(options)
    missing = [name for name in _LOAD if name not in options]
    if missing and (given := [name for name in options if name in (*_LOAD, *_NODE)]):
        which, other = " and ".join(f"--option {name}" for name in missing), " and ".join(given)
        raise ConfigInvalid(
            which,
            "",
            f"must be given with {other}: the number of nodes depends on both",
            hint="0 is valid",
        )


JOB = Job(
    name="capacity",
    about="computes what connections and deliveries cost, when load is highest, and how many nodes a load needs",
    run=run,
    reads=("bronze.stats",),
    writes=("gold.capacity", "gold.forecast"),
    kind="batch",
    every_s=3_600.0,
    options={
        "connections": "Connections to plan for. Needs deliveries.",
        "deliveries": "Deliveries per second to plan for. Needs connections.",
        "cores": "Cores of a node. Default: 2.",
        "memory_gb": "Memory of a node in GB. Default: 4.",
    },
    check=check,
)
