"""`godwit plan`: predicts the capacity of this machine, and what a workload needs. measure.py runs the node for less than a
minute, machine.py has the results, workload.py the workload, model.py predicts, check.py compares a prediction with a
real run, and report.py prints.
"""

from .command import plan

__all__ = ["plan"]
