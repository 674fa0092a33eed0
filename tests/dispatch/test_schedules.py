"""The property of fan-out: whatever dies, freezes or times out, nothing is lost and nothing is sent twice without saying so."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.dispatch.simulation import FAULTS, LEASE_MS, Worker, World, check_end, fill

WORKERS = 2
STEPS = 150
SETTLING_STEPS = 4_000
SCHEDULES = 200
SCHEDULES_LONG = 10_000


async def settle() -> None:
    """Lets every task run to its next gate."""
    for _ in range(4):
        await asyncio.sleep(0)


async def run_schedule(seed: int, fault: str = "") -> list[str]:
    """What one schedule violated."""
    world = World(random.Random(seed), fault)
    expected = fill(world)
    workers = {number: Worker(world, number) for number in range(WORKERS)}
    frozen: set[int] = set()
    try:
        for _ in range(STEPS):
            await act(world, workers, frozen)
            await settle()
        world.is_calm = True
        frozen.clear()
        await calm_down(world, workers)
        check_end(world, expected)
    finally:
        for worker in workers.values():
            await worker.kill()
        world.database.close()
    return world.violations


async def act(world: World, workers: dict[int, Worker], frozen: set[int]) -> None:
    """One accident, or one step of somebody's work."""
    chance = world.chance
    drawn = chance.random()
    number = chance.randrange(WORKERS)
    if drawn < 0.02:
        await workers[number].kill()
        workers[number] = Worker(world, number)
    elif drawn < 0.05:
        frozen.symmetric_difference_update({number})
    elif drawn < 0.12:
        world.now_ms += chance.choice((1, 5, LEASE_MS // 2, LEASE_MS + 1))
    elif drawn < 0.45:
        if number not in frozen:
            workers[number].begin(chance.choice(Worker.STEPS))
    else:
        open_gate(world, frozen)


def open_gate(world: World, frozen: set[int]) -> None:
    gates = [gate for gate in world.gates if gate.worker not in frozen]
    if gates:
        gate = world.chance.choice(gates)
        world.gates.remove(gate)
        if not gate.opened.done():
            gate.opened.set_result(None)


async def calm_down(world: World, workers: dict[int, Worker]) -> None:
    """No more accidents: work goes on until nothing changes."""
    for step in range(SETTLING_STEPS):
        if step % 40 == 39:
            world.now_ms += LEASE_MS // 3
        for worker in workers.values():
            worker.begin(Worker.STEPS[step % 3])
        await settle()
        while world.gates:
            open_gate(world, set())
            await settle()
        if step % 50 == 49 and is_done(world):
            return


def is_done(world: World) -> bool:
    """Whether no job and no delivery is open."""
    jobs = world.database.execute("SELECT count(*) FROM job WHERE is_done = 0").fetchone()[0]
    rows = world.database.execute("SELECT count(*) FROM delivery WHERE state IN (1, 2, 3)").fetchone()[0]
    return not jobs and not rows


async def test_no_schedule_loses_a_delivery_or_repeats_one_in_silence() -> None:
    for seed in range(SCHEDULES):
        assert not await run_schedule(seed), f"seed {seed}"


@pytest.mark.long
async def test_no_schedule_of_very_many_does() -> None:
    for seed in range(SCHEDULES, SCHEDULES + SCHEDULES_LONG):
        assert not await run_schedule(seed), f"seed {seed}"


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_planted_fault_is_found(fault: str) -> None:
    for seed in range(SCHEDULES):
        if await run_schedule(seed, fault):
            return
    pytest.fail(f"no schedule of {SCHEDULES} found {fault}")
