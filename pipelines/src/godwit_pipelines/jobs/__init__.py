"""Every job by its name, in the order in which one builds on the other. A job is a module here that has a `JOB`."""

from __future__ import annotations

from . import land, maintain, reconcile
from .job import Job, Outcome, Run

JOBS: dict[str, Job] = {module.JOB.name: module.JOB for module in (land, reconcile, maintain)}

__all__ = ["JOBS", "Job", "Outcome", "Run"]
