"""A served process is not searched for garbage again and again."""

from __future__ import annotations

import gc
import subprocess
import sys

from godwit.cli.program import GARBAGE_THRESHOLD, spare_start

COUNT = """
import gc
from godwit.cli.program import spare_start
from godwit.server import Node
class Kept:
    pass
kept = Kept()
spare_start()
print(any(one is kept for one in gc.get_objects()), gc.get_freeze_count() > 10_000)
"""


def test_what_is_there_at_the_start_is_not_looked_at_again() -> None:
    said = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "True"]


def test_garbage_is_still_collected() -> None:
    before = gc.get_threshold()
    try:
        spare_start()
        assert gc.isenabled() and gc.get_threshold() == (GARBAGE_THRESHOLD, *before[1:])
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
