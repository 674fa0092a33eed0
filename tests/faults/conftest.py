"""Shared by the fault tests: a printed seed, and the drivers.

`TEST_SEED=7` repeats a run; `TEST_DRIVER=readiness` confines it to one driver.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.node_process import is_allowed

DRIVERS = ("io_uring", "readiness")
allowed: dict[str, bool] = {}


@pytest.fixture
def random() -> Random:
    seed = os.environ.get("TEST_SEED") or str(Random().randrange(1 << 32))
    print(f"TEST_SEED={seed}")
    return Random(seed)


@pytest.fixture(params=DRIVERS)
async def driver(request: pytest.FixtureRequest) -> str:
    """The name of a driver that this machine allows."""
    name: str = request.param
    if os.environ.get("TEST_DRIVER", name) != name:
        pytest.skip(f"TEST_DRIVER leaves {name} out")
    if name not in allowed:
        allowed[name] = await is_allowed(name)
    if not allowed[name]:
        pytest.skip(f"this machine allows no {name}")
    return name
