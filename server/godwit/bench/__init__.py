"""`godwit bench`: measures this node against a baseline and its rivals, on one generator, in interleaved rounds.

loads.py says what each load does and what is read from it, targets.py how each server is started, rounds.py takes the
turns, result.py keeps machine and medians as JSON, generator.py is the door to the native load generator.
"""

from .command import bench

__all__ = ["bench"]
