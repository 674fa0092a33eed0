"""What the fault tests share: a printed seed, and the drivers they run on.

`GODWIT_TEST_SEED=7` repeats a run; `GODWIT_TEST_DRIVER=readiness` confines it to one driver.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.node_process import running_node

DRIVERS = ("io_uring", "readiness")


@pytest.fixture
def random() -> Random:
    seed = os.environ.get("GODWIT_TEST_SEED") or str(Random().randrange(1 << 32))
    print(f"GODWIT_TEST_SEED={seed}")
    return Random(seed)


@pytest.fixture(params=DRIVERS)
async def driver(request: pytest.FixtureRequest) -> str:
    """The name of a driver that this machine allows."""
    name: str = request.param
    if os.environ.get("GODWIT_TEST_DRIVER", name) != name:
        pytest.skip(f"GODWIT_TEST_DRIVER leaves {name} out")
    if name == "io_uring":
        try:
            async with running_node({"node.driver": name}):
                pass
        except RuntimeError:
            pytest.skip("this machine allows no io_uring")
    return name
