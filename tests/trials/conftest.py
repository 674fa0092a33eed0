"""A printed seed, as in the tests of faults: `TEST_SEED=7` repeats a trial's choices."""

from tests.faults.conftest import random

__all__ = ["random"]
