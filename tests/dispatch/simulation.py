"""A world in which fan-out runs under every accident: the production workers and SQL, and a simulated provider, clock and scheduler.

Each call of a worker to the store or the provider stops at a gate before it happens and at one after. A schedule, drawn from a seed,
says which gate opens next, when the clock jumps, who freezes and who dies. Faults can be planted to show that the checks find them.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Collection, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from godwit.dispatch.fanout.dispatcher import Clocks, Dispatcher, Pace
from godwit.dispatch.model import DeliveryKey, Job, Outcome, Page, PutOff, Result, Shipment, State
from godwit.dispatch.pure.rank import is_open
from godwit.dispatch.stores.sqlite import accept, fanout, jobs, receivers
from godwit.dispatch.stores.sqlite.changes import add_counts
from godwit.dispatch.stores.sqlite.schema import TABLES, add_functions
from godwit.dispatch.vault import Vault

LEASE_MS = 30
PACE = Pace(page_receivers=2, slots=2, per_lane=2, lease_ms=LEASE_MS, due_limit=3)
CHANNEL = "webhook"
RESULTS = (Result.OK, Result.TEMPORARY, Result.DOUBT, Result.THROTTLED)
FAULTS = (
    "no_fence",
    "no_lease_check",
    "early_outcome",
    "lost_wakeup",
    "no_doubt_flag",
    "begins_twice",
    "late_failure",
    "counts_drift",
)
"""What can be planted; each is found by some schedule."""


@dataclass
class Gate:
    """A call that waits to go on."""

    worker: int
    opened: asyncio.Future[None]


@dataclass
class World:
    """The store, the clock, what the provider accepted, and what was violated."""

    chance: random.Random
    fault: str = ""
    now_ms: int = 1_000
    gates: list[Gate] = field(default_factory=list)
    accepted: dict[DeliveryKey, list[bool]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    cursors: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    is_calm: bool = False

    def __post_init__(self) -> None:
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.executescript(TABLES)
        add_functions(self.database, Vault([bytes(32)]))

    async def pause(self, worker: int) -> None:
        """Waits until the schedule opens this gate."""
        gate = Gate(worker, asyncio.get_running_loop().create_future())
        self.gates.append(gate)
        await gate.opened

    def row(self, key: DeliveryKey) -> tuple[State, int, bool]:
        """State, attempt and flag of a delivery."""
        found = self.database.execute(
            "SELECT state, attempt, doubt FROM delivery WHERE nid = ? AND rid = ? AND channel = ? AND aid = ?", key
        ).fetchone()
        return State(found[0]), found[1], bool(found[2])


class Store:
    """The port of fan-out over the production SQL, for one worker."""

    def __init__(self, world: World, worker: int) -> None:
        self.world, self.worker = world, worker

    async def list_due_tenants(self, channel: str, now_ms: int) -> list[str]:
        return jobs.list_due_tenants(self.world.database, channel, now_ms)

    async def claim_job(
        self,
        channel: str,
        tenant: str | None,
        now_ms: int,
        lease_ms: int,
        priority_max: int = 2,
        but: Collection[int] = (),
    ) -> Job | None:
        await self.world.pause(self.worker)
        job = jobs.claim_job(self.world.database, channel, tenant, now_ms, lease_ms, priority_max, but)
        await self.world.pause(self.worker)
        return job

    async def read_page(self, job: Job, limit: int, now_ms: int) -> Page:
        await self.world.pause(self.worker)
        return jobs.read_page(self.world.database, job, limit, now_ms)

    async def commit_page(self, job: Job, page: Page, due_ms: int, now_ms: int) -> tuple[DeliveryKey, ...] | None:
        await self.world.pause(self.worker)
        database = self.world.database
        if self.world.fault == "no_fence":
            fence = database.execute("SELECT fence FROM job WHERE nid = ?", (job.nid,)).fetchone()[0]
            job = replace(job, fence=fence)
        inserted = jobs.commit_page(database, job, page, due_ms, now_ms)
        check_cursors(self.world)
        await self.world.pause(self.worker)
        return inserted

    async def advance(
        self,
        outcomes: Sequence[Outcome],
        starts: Sequence[Shipment],
        in_flight: Sequence[Shipment],
        now_ms: int,
        due_ms: int,
    ) -> list[Shipment]:
        await self.world.pause(self.worker)
        world, fault = self.world, self.world.fault
        if fault == "late_failure":
            outcomes = [replace(one, attempt=world.row(one.key)[1]) for one in outcomes]
        if fault == "begins_twice":
            starts = [replace(one, attempt=world.row(one.key)[1]) for one in starts]
            for one in starts:
                force_state(world.database, one.key, State.QUEUED)
        begun = fanout.advance(world.database, outcomes, starts, in_flight, now_ms, due_ms)
        if fault == "early_outcome":
            for one in begun:
                force_state(world.database, one.key, State.SENT)
        if fault == "counts_drift" and len(outcomes) > 1:
            world.database.execute("UPDATE delivery_count SET count = count + 1")
        check_counts(world)
        await world.pause(self.worker)
        return begun

    async def put_off(self, rows: Sequence[PutOff]) -> None:
        await self.world.pause(self.worker)
        fanout.put_off(self.world.database, rows)
        await self.world.pause(self.worker)

    async def claim_due(
        self, channel: str, now_ms: int, due_ms: int, limit: int, own: Collection[DeliveryKey]
    ) -> list[Shipment]:
        await self.world.pause(self.worker)
        world, fault = self.world, self.world.fault
        claimed = (
            [] if fault == "lost_wakeup" else fanout.claim_due(world.database, channel, now_ms, due_ms, limit, own)
        )
        if fault == "no_doubt_flag":
            world.database.execute("UPDATE delivery SET doubt = 0")
            claimed = [replace(one, is_doubtful=False) for one in claimed]
        await world.pause(self.worker)
        return claimed


class Provider:
    """Takes what is sent; its answers may fail, get lost, or come when the sender is long dead."""

    def __init__(self, world: World, worker: int) -> None:
        self.world, self.worker = world, worker
        self._under_way: set[DeliveryKey] = set()

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        (shipment,) = batch
        if shipment.key in self._under_way:
            self.world.violations.append(f"{shipment.key} is sent twice at once by one worker")
        self._under_way.add(shipment.key)
        outcome = await self._send(shipment)
        self._under_way.discard(shipment.key)
        return [outcome]

    async def _send(self, shipment: Shipment) -> Outcome:
        world, key = self.world, shipment.key
        state, attempt, _ = world.row(key)
        if is_open(state) and (state is not State.SENDING or attempt != shipment.attempt):
            world.violations.append(f"{key} sent as attempt {shipment.attempt} while it is {state.name} {attempt}")
        await world.pause(self.worker)
        result = Result.OK if world.is_calm else world.chance.choices(RESULTS, [7, 2, 2, 2])[0]
        is_taken = result is Result.OK or (result is Result.DOUBT and world.chance.random() < 0.5)
        if is_taken:
            world.accepted.setdefault(key, []).append(shipment.is_doubtful)
        await world.pause(self.worker)
        if result is Result.OK:
            return Outcome(key, shipment.attempt, State.SENT)
        wait_ms = 5 if result is Result.THROTTLED else 0
        return Outcome(
            key, shipment.attempt, State.DEFERRED, str(result), retry_at_ms=world.now_ms + 5, throttle_ms=wait_ms
        )


class Worker:
    """A dispatcher with at most one call of each step under way."""

    STEPS = ("page", "due", "tick")

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        now = lambda: world.now_ms  # noqa: E731  # a clock
        mono = (lambda: 0) if world.fault == "no_lease_check" else now
        clocks = Clocks(now, mono)
        self.dispatcher = Dispatcher(CHANNEL, Store(world, number), Provider(world, number), clocks, pace=PACE)
        self.tasks: dict[str, asyncio.Task[Any]] = {}

    def begin(self, step: str) -> None:
        """Begins a step, unless it is under way."""
        task = self.tasks.get(step)
        if task is not None and not task.done():
            return
        if task is not None and task.exception() is not None:
            self.world.violations.append(f"{step}: {task.exception()!r}")
        steps: dict[str, Coroutine[Any, Any, Any]] = {}
        if step == "page":
            steps[step] = self.dispatcher.work_page(None)
        elif step == "due":
            steps[step] = self.dispatcher.take_due()
        else:
            steps[step] = self.dispatcher.tick()
        self.tasks[step] = asyncio.get_running_loop().create_task(steps[step])

    async def kill(self) -> None:
        """Dies: nothing it had in memory is left, and its gates never open."""
        self.dispatcher.abandon()
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), *self.dispatcher.tasks, return_exceptions=True)
        self.world.gates = [gate for gate in self.world.gates if gate.worker != self.number]


def force_state(database: sqlite3.Connection, key: DeliveryKey, state: State) -> None:
    """Moves a delivery and its counts, whatever it was."""
    before = database.execute(
        "SELECT state FROM delivery WHERE nid=? AND rid=? AND channel=? AND aid=?", key
    ).fetchone()
    database.execute("UPDATE delivery SET state=? WHERE nid=? AND rid=? AND channel=? AND aid=?", (int(state), *key))
    add_counts(database, Counter({(key.nid, key.channel, State(before[0])): -1}))
    add_counts(database, Counter({(key.nid, key.channel, state): 1}))


def check_counts(world: World) -> None:
    """Counts equal rows."""
    rows = world.database.execute("SELECT nid, channel, state, count(*) FROM delivery GROUP BY 1, 2, 3").fetchall()
    counts = world.database.execute("SELECT * FROM delivery_count WHERE count <> 0").fetchall()
    if sorted(rows) != sorted(counts):
        world.violations.append(f"counts {sorted(counts)} are not those of the rows {sorted(rows)}")


def check_cursors(world: World) -> None:
    """A cursor never goes back, and what is done stays done."""
    for nid, channel, cursor, is_done in world.database.execute("SELECT nid, channel, cursor, is_done FROM job"):
        before = world.cursors.get((nid, channel), (0, 0))
        if cursor < before[0] or is_done < before[1]:
            world.violations.append(f"job {nid} went back from {before} to {(cursor, is_done)}")
        world.cursors[nid, channel] = (cursor, is_done)


def fill(world: World) -> list[DeliveryKey]:
    """Some receivers, each with a webhook, and some notifications to all; the deliveries there must be."""
    database = world.database
    names = [f"r{number}" for number in range(world.chance.randint(1, 7))]
    for name in names:
        receivers.put_receiver(database, "t", name, b"{}", 0)
        receivers.put_address(database, "t", name, "a", CHANNEL, "https://example.com")
    count = world.chance.randint(1, 2)
    for number in range(count):
        draft = accept.Draft("t", f"n{number}", b"", b"{}", tuple(names), (), False, 10**9)
        channels = (CHANNEL,) if number else ()  # the first waits for the router
        accept.accept(database, draft._replace(channels=channels), 0)
    accept.route(database, (CHANNEL,), 0, 10)
    return [DeliveryKey(nid + 1, rid + 1, CHANNEL, rid + 1) for nid in range(count) for rid in range(len(names))]


def check_end(world: World, expected: list[DeliveryKey]) -> None:
    """Every delivery ended, none was lost, and none was made twice without saying so."""
    for key in expected:
        try:
            state, _, is_flagged = world.row(key)
        except TypeError:
            world.violations.append(f"{key} does not exist")
            continue
        accepted = world.accepted.get(key, [])
        if is_open(state):
            world.violations.append(f"{key} is {state.name} at the end")
        if state is State.SENT and not accepted:
            world.violations.append(f"{key} is sent, and the provider has nothing")
        if len(accepted) > 1 and (not is_flagged or accepted.count(False) > 1):
            world.violations.append(f"{key} was accepted {len(accepted)} times, flags {accepted}, row {is_flagged}")
    check_counts(world)
