"""A provider that is down for two hours, on a simulated clock: every delivery waits, is tried again by the schedule, and arrives once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from godwit.dispatch.channels.outcomes import make_outcome
from godwit.dispatch.fanout.dispatcher import Clocks, Dispatcher, Pace
from godwit.dispatch.model import DeliveryKey, Outcome, Result, Shipment, State
from godwit.dispatch.pure.retry import SCHEDULE_MS, STEP_MS_MIN
from godwit.dispatch.stores.sqlite import accept, receivers
from tests.dispatch.simulation import CHANNEL, Store, World, check_counts

HOUR_MS = 3_600_000
RECEIVERS = 50
EXPIRES_MS = 72 * HOUR_MS


class OpenWorld(World):
    """A world in which nobody waits: only its clock is simulated."""

    async def pause(self, worker: int) -> None:
        return


class Relay:
    """A provider that answers with a temporary failure until `back_ms`."""

    def __init__(self, world: World, back_ms: int) -> None:
        self.world, self._back_ms = world, back_ms
        self.refused: dict[DeliveryKey, list[int]] = {}
        self.taken: dict[DeliveryKey, list[tuple[int, bool]]] = {}

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        (shipment,) = batch
        now_ms, is_down = self.world.now_ms, self.world.now_ms < self._back_ms
        if is_down:
            self.refused.setdefault(shipment.key, []).append(now_ms)
        else:
            self.taken.setdefault(shipment.key, []).append((now_ms, shipment.is_doubtful))
        result = Result.TEMPORARY if is_down else Result.OK
        return [make_outcome(shipment, result, "", now_ms, self.world.chance.random())]


@pytest.mark.parametrize("seed", range(5))
async def test_a_provider_that_is_down_for_two_hours_loses_and_repeats_nothing(seed: int) -> None:
    world = OpenWorld(random.Random(seed))
    begin_ms, back_ms = world.now_ms, world.now_ms + 2 * HOUR_MS
    keys = fill_with_one(world)
    relay = Relay(world, back_ms)
    clock = lambda: world.now_ms  # noqa: E731  # simulated
    pace = Pace(page_receivers=20, slots=64, per_lane=64, due_limit=RECEIVERS)
    dispatcher = Dispatcher(CHANNEL, Store(world, 0), relay, Clocks(clock, clock), pace=pace)
    try:
        await work_until_sent(world, dispatcher)
        assert not world.violations
        assert sorted(relay.taken) == keys
        assert all([is_flagged for _, is_flagged in taken] == [False] for taken in relay.taken.values())
        for key in keys:
            times, arrived_ms = relay.refused[key], relay.taken[key][0][0]
            assert world.row(key) == (State.SENT, len(times) + 1, False)
            assert times[0] == begin_ms and times[-1] < back_ms <= arrived_ms
            waits = [later - earlier for earlier, later in zip(times, [*times[1:], arrived_ms], strict=True)]
            assert all(wait <= max(STEP_MS_MIN, most) for wait, most in zip(waits, SCHEDULE_MS, strict=False))
    finally:
        dispatcher.abandon()
        world.database.close()


def fill_with_one(world: World) -> list[DeliveryKey]:
    """One notification to all receivers."""
    names = tuple(f"r{number}" for number in range(RECEIVERS))
    for name in names:
        receivers.put_receiver(world.database, "t", name, b"{}", 0)
        receivers.put_address(world.database, "t", name, "a", CHANNEL, "https://example.com")
    accept.accept(world.database, accept.Draft("t", "n", b"", b"{}", names, (), False, EXPIRES_MS), 0)
    accept.route(world.database, (CHANNEL,), world.now_ms, 10)
    return [DeliveryKey(1, rid + 1, CHANNEL, rid + 1) for rid in range(RECEIVERS)]


async def work_until_sent(world: World, dispatcher: Dispatcher) -> None:
    """Works on what is due, then the clock goes to what is due next; ends when nothing is open."""
    while True:
        while await dispatcher.work_page(None) is not None or await dispatcher.take_due() or dispatcher.is_busy:
            await dispatcher.tick()
            if dispatcher.tasks:
                await asyncio.wait(dispatcher.tasks)
        check_counts(world)
        due_ms = world.database.execute("SELECT min(due_ms) FROM delivery WHERE state IN (1, 2, 3)").fetchone()[0]
        if due_ms is None:
            return
        world.now_ms = max(world.now_ms, due_ms)
