"""`godwit plan`: what this machine carries, and what a workload would take of it.

measure.py runs the node for less than a minute, machine.py holds what was found, workload.py what is asked, model.py
predicts, check.py holds a prediction against the workload itself, report.py shows it.
"""

from .command import plan

__all__ = ["plan"]
