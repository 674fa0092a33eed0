"""`all`: runs every job that the report needs, one after the other in one session. It is meant for a first look; in production each job
runs on its own, at its own interval.
"""

from __future__ import annotations

from dataclasses import replace

from . import audit, capacity, delivery, land, reconcile, sessions, usage
from .job import Job, Outcome, Run

_JOBS = (land.JOB, reconcile.JOB, audit.JOB, delivery.JOB, sessions.JOB, usage.JOB, capacity.JOB)


def run(run: Run) -> Outcome:
    """Run each job to its end, in order, until a stop is requested."""
    texts, found = [], 0
    for number, job in enumerate(_JOBS, 1):
        if run.is_asked():
            break
        run.say(f"{number} of {len(_JOBS)}: {job.name}, {job.about}")
        outcome = job.run(replace(run, job=job.name, every_s=None, options={}, queries=[])) or Outcome()
        found += outcome.found
        if outcome.text:
            texts.append(f"{job.name}: {outcome.text}")
    return Outcome("\n".join(texts), found)


JOB = Job(
    name="all",
    about="land, reconcile, audit and aggregate everything for the report",
    run=run,
    reads=tuple(dict.fromkeys(name for job in _JOBS for name in job.reads)),
    writes=tuple(dict.fromkeys(name for job in _JOBS for name in job.writes)),
    kind="batch",
    parts=tuple(job.name for job in _JOBS),
    every_s=300.0,
)
