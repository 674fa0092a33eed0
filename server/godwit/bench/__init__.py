"""`godwit bench`: measures this node against a baseline and its rivals, on one generator, in interleaved rounds.

loads.py defines the loads and their metrics, targets.py starts the servers, rounds.py runs the rounds, result.py writes
the machine and the medians as JSON, and generator.py calls the native load generator.
"""

from .command import bench

__all__ = ["bench"]
