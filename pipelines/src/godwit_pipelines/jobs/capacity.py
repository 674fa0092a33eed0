"""`capacity`: what a node's work costs, when there is most of it, and how many nodes a load would take."""

from __future__ import annotations

from ..transforms.capacity import fit_costs, forecast, loads, nodes_needed
from ..words import counted
from .job import Job, Outcome, Run

_WANTED = ("connections", "deliveries", "cores", "memory_gb")


def run(run: Run) -> Outcome:
    """Fit what the statistics say, and answer --option connections=… deliveries=… cores=… memory_gb=…"""
    minutes = loads(run.lake.read("bronze.stats")).persist()
    try:
        run.lake.replace("gold.capacity", fit_costs(minutes))
        run.lake.replace("gold.forecast", forecast(minutes))
    finally:
        minutes.unpersist()
    costs = run.lake.read("gold.capacity")
    if not all(name in run.options for name in _WANTED[:2]):
        return Outcome(f"{counted(costs.count(), 'node')} fitted; see gold.capacity and gold.forecast")
    memory = int(float(run.options.get("memory_gb", "4")) * 2**30)
    wanted = nodes_needed(
        costs,
        int(run.options["connections"]),
        int(run.options["deliveries"]),
        float(run.options.get("cores", "2")),
        memory,
    )
    lines = [
        f"{row.node}: {counted(row.nodes, 'node')} like it"
        if row.by_memory is not None and row.by_cpu is not None
        else f"{row.node}: its load never changed enough to tell what a connection and a delivery cost"
        for row in wanted.collect()
    ]
    return Outcome("\n".join(lines) or "no statistics have landed")


JOB = Job(
    name="capacity",
    about="what a node's connections and deliveries cost, when there are most, and how many nodes a load would take",
    run=run,
    reads=("bronze.stats",),
    writes=("gold.capacity", "gold.forecast"),
    kind="batch",
    every_s=3_600.0,
    options={
        "connections": "So many connections are to be carried…",
        "deliveries": "…with so many deliveries a second…",
        "cores": "…by nodes of so many cores (2)…",
        "memory_gb": "…and so much memory (4).",
    },
)
