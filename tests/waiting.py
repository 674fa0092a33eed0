"""Waits until something holds that nothing announces; the test's own time limit is the bound."""

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], object]) -> None:
    """Looks again after each millisecond."""
    while not holds():  # noqa: ASYNC110 - a count of the node's, which has no event
        await asyncio.sleep(0.001)
