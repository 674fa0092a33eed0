"""The loop of one channel's worker: pages while there is room, due deliveries at each sweep, and a tick after changes."""

from __future__ import annotations

import asyncio
from typing import Protocol

from ..model import Priority
from .dispatcher import Dispatcher

TICK_S = 0.1
BESIDE_S = 1.0
"""How long a tenant with a page in memory waits after there was no job of another notification."""


class Hints(Protocol):
    """The wake-ups that this loop needs."""

    def add(self, tenant: str) -> None: ...

    def take(self) -> str | None: ...

    def __len__(self) -> int: ...

    async def wait(self, timeout_s: float) -> None: ...


async def take_pages(dispatcher: Dispatcher, hints: Hints, sweep_s: float) -> None:
    """Process pages of woken tenants, in turn; asks the store at each sweep which tenants have work, however many are woken."""
    passed_over, swept_s = 0, 0.0
    looked: dict[str, float] = {}
    while True:
        if not len(hints) or asyncio.get_running_loop().time() >= swept_s + sweep_s:
            swept_s = asyncio.get_running_loop().time()
            for due in await dispatcher.list_due_tenants():
                hints.add(due)
        tenant = hints.take()
        if tenant is None:
            passed_over = 0
            await hints.wait(sweep_s)
        elif not dispatcher.has_room(tenant):
            # Its endpoints are slow: others go first, then what is urgent, and what has other endpoints.
            hints.add(tenant)
            if dispatcher.has_urgent_room(tenant) and await dispatcher.work_page(tenant, Priority.HIGH):
                continue
            if await _work_beside(dispatcher, tenant, looked):
                continue
            passed_over += 1
            if passed_over >= len(hints):
                passed_over = 0
                await asyncio.sleep(TICK_S)
        elif await dispatcher.work_page(tenant) is not None:
            passed_over = 0
            hints.add(tenant)  # at the end of the queue: tenants take turns


async def _work_beside(dispatcher: Dispatcher, tenant: str, looked: dict[str, float]) -> bool:
    """Process a page of another notification than those of which a page waits. `looked` has the times at which there was none."""
    now_s = asyncio.get_running_loop().time()
    if now_s < looked.get(tenant, 0.0) or not dispatcher.has_room_beside(tenant):
        return False
    if await dispatcher.work_page(tenant) is not None:
        return True
    for known in [name for name, until_s in looked.items() if until_s <= now_s]:
        del looked[known]
    looked[tenant] = now_s + BESIDE_S
    return False


async def take_due(dispatcher: Dispatcher, stirred: asyncio.Event, sweep_s: float) -> None:
    """Claim due deliveries at each sweep, or when `stirred` is set, until there are none."""
    while True:
        if not dispatcher.has_due_room:
            await asyncio.sleep(TICK_S)
            continue
        stirred.clear()
        if not await dispatcher.take_due():
            await hold(stirred, sweep_s)


async def keep_ticking(dispatcher: Dispatcher) -> None:
    """Tick after changes, and every `TICK_S` while sends are running. Ends after `begin_stop`, never within a tick."""
    while not dispatcher.is_stopping:
        if dispatcher.is_busy:
            await hold(dispatcher.stirred, TICK_S)
        else:
            await dispatcher.stirred.wait()
        await dispatcher.tick()


async def hold(event: asyncio.Event, timeout_s: float) -> None:
    """Returns when the event is set, or after `timeout_s`."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return
