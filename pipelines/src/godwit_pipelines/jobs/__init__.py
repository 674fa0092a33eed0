"""Every job by its name, each after the jobs whose tables it reads. A job is a module in this folder with a `JOB`."""

from __future__ import annotations

from . import all as all_
from . import audit, capacity, delivery, land, maintain, ohlc, reconcile, replay, sessions, usage
from .job import Job, Outcome, Run

_MODULES = (all_, land, reconcile, audit, delivery, sessions, usage, capacity, ohlc, replay, maintain)
JOBS: dict[str, Job] = {module.JOB.name: module.JOB for module in _MODULES}

__all__ = ["JOBS", "Job", "Outcome", "Run"]
