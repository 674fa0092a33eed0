"""Every job by its name, in the order in which one builds on the other. A job is a module here that has a `JOB`."""

from __future__ import annotations

from . import land
from .job import Job, Outcome, Run

JOBS: dict[str, Job] = {module.JOB.name: module.JOB for module in (land,)}

__all__ = ["JOBS", "Job", "Outcome", "Run"]
