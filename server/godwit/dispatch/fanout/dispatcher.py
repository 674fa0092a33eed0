"""One channel's worker: claims pages and due deliveries, sends, and settles outcomes.

Stateless: a crash loses nothing, because an intent is stored before anything is sent. `run.py` calls the three steps in a
loop, and the property test in any order. Invariant: a shipment is sent only while its lease holds, after the store marked
it as sending, and never twice under the same attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace

from ..errors import NotSent, StoreFailed
from ..model import DeliveryKey, Job, Outcome, Page, Priority, PutOff, Result, Shipment, State
from ..stores.ports import FanoutStore, Sender
from .lanes import Lanes, Places
from .waiting import Held

DUE_PAGES_MAX = 20
"""How many pages of due deliveries are in memory at once."""
TENANT_PAGES_MAX = 8
"""How many pages of one tenant are in memory at once, while those of all have room: one each of several notifications."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How much one worker does at once."""

    page_receivers: int = 500
    slots: int = 64
    per_lane: int = 8
    lease_ms: int = 30_000
    due_limit: int = 500


@dataclass(frozen=True, slots=True)
class Clocks:
    """`now_ms` is the store's wall clock, `mono_ms` one that includes suspend."""

    now_ms: Callable[[], int]
    mono_ms: Callable[[], int]


class Dispatcher:
    """Works for one channel. `lane_of` says which shipments share a lane, `places` are those at its providers.

    `on_refused` is called with the error of each result that the store cannot take.
    """

    def __init__(
        self,
        channel: str,
        store: FanoutStore,
        sender: Sender,
        clocks: Clocks,
        *,
        pace: Pace,
        lane_of: Callable[[Shipment], Hashable] = lambda shipment: shipment.tenant,
        places: Places | None = None,
        on_refused: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self._on_refused = on_refused
        self.channel = channel
        self._store, self._sender, self._clocks, self._pace = store, sender, clocks, pace
        self._waiting = Lanes(lane_of, pace.per_lane, pace.slots, places)
        self._in_flight: dict[DeliveryKey, Held] = {}
        self._starting: set[DeliveryKey] = set()
        self._outcomes: list[Outcome] = []
        self._put_off: list[PutOff] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self._renewed_ms = 0
        self.is_stopping = False
        self.stirred = asyncio.Event()
        """Set when a slot became free, an outcome waits, or something new can start."""

    @property
    def is_busy(self) -> bool:
        """Whether anything waits, is being sent, or is not stored yet."""
        return bool(len(self._waiting) or self._in_flight or self._outcomes or self._put_off)

    def resize(self, slots: int) -> None:
        """How many may be in flight from now on, also on one lane."""
        self._pace = replace(self._pace, slots=slots, per_lane=slots)
        self._waiting.resize(slots, slots)
        self.stirred.set()

    def has_room(self, tenant: str) -> bool:
        """Whether another page of this tenant fits into memory, of any notification."""
        return self._waiting.count(tenant) < self._pace.page_receivers

    def has_room_beside(self, tenant: str) -> bool:
        """Whether a page fits of a notification of which less than a page waits: the endpoints of the others may be slow."""
        page = self._pace.page_receivers
        return (
            self._waiting.count(tenant) < TENANT_PAGES_MAX * page
            and len(self._waiting) < DUE_PAGES_MAX * self._pace.due_limit // 2
        )

    @property
    def has_due_room(self) -> bool:
        """Whether more due deliveries fit into memory."""
        return len(self._waiting) < DUE_PAGES_MAX * self._pace.due_limit

    async def list_due_tenants(self) -> list[str]:
        """The tenants with a job that no worker has claimed."""
        return await self._store.list_due_tenants(self.channel, self._clocks.now_ms())

    def has_urgent_room(self, tenant: str) -> bool:
        """Whether a page of high priority fits; it is sent before others."""
        count, page = self._waiting.count(tenant), self._pace.page_receivers
        return count < 2 * page or (count < (TENANT_PAGES_MAX + 1) * page and self.has_due_room)

    async def work_page(self, tenant: str | None, priority_max: Priority = Priority.BULK) -> str | None:
        """Claim a job and store one page of it. Returns its tenant; None if there was no job but of notifications of which a
        page waits: those of slow endpoints wait in the store, and do not fill the memory that others need.
        """
        began_ms, lease_ms = self._clocks.mono_ms(), self._pace.lease_ms
        but = () if tenant is None else self._waiting.list_notifications(tenant, self._pace.page_receivers)
        now_ms = self._clocks.now_ms()
        job = await self._store.claim_job(self.channel, tenant, now_ms, lease_ms, priority_max, but)
        if job is None:
            return None
        now_ms = self._clocks.now_ms()
        page = await self._store.read_page(job, self._pace.page_receivers, now_ms)
        inserted = await self._store.commit_page(job, page, now_ms + self._pace.lease_ms, now_ms)
        if inserted:
            self._hold_page(job, page, inserted, began_ms + self._pace.lease_ms)
        return job.tenant

    async def take_due(self) -> int:
        """Claim due deliveries; returns their number."""
        lease_end_ms = self._clocks.mono_ms() + self._pace.lease_ms
        own = {*self._waiting.keys(), *self._starting, *self._in_flight, *(outcome.key for outcome in self._outcomes)}
        now_ms = self._clocks.now_ms()
        due_ms = now_ms + self._pace.lease_ms
        found = await self._store.claim_due(self.channel, now_ms, due_ms, self._pace.due_limit, own)
        for shipment in found:
            self._hold(Held(shipment, lease_end_ms))
        self.stirred.set()
        return len(found)

    async def tick(self) -> None:
        """One transaction: stores outcomes, renews leases of running sends, and marks the sends that start next."""
        self.stirred.clear()
        put_off, self._put_off = self._put_off, []
        if put_off:  # a loss is harmless: their leases end
            await self._store.put_off(put_off)
        outcomes = list(self._outcomes)
        starts = self._choose_starts()  # they have slots: nothing may fail before `advance`
        mono_ms = self._clocks.mono_ms()
        renews = mono_ms >= self._renewed_ms + self._pace.lease_ms // 3
        in_flight = [held.shipment for held in self._in_flight.values()] if renews else []
        if not (outcomes or starts or in_flight):
            return
        lease_end_ms = mono_ms + self._pace.lease_ms
        self._renewed_ms = mono_ms if renews else self._renewed_ms
        now_ms = self._clocks.now_ms()
        begun: list[Shipment] = []
        self._starting = {shipment.key for shipment in starts}
        try:
            begun = await self._store.advance(outcomes, starts, in_flight, now_ms, now_ms + self._pace.lease_ms)
        except StoreFailed:
            raise
        except Exception:  # of one outcome: the others, and all sends after them, do not wait for it
            if not outcomes:
                raise
            await self._store_each(outcomes)
            begun = await self._store.advance([], starts, in_flight, now_ms, now_ms + self._pace.lease_ms)
        finally:
            self._starting = set()
            started = {shipment.key for shipment in begun}
            for shipment in starts:
                if shipment.key not in started:  # another worker has it, it ended, or the store failed
                    self._waiting.end(shipment)
        del self._outcomes[: len(outcomes)]  # only now: until they are stored this worker must report them
        for shipment in begun:
            self._start(Held(shipment, lease_end_ms))

    async def _store_each(self, outcomes: list[Outcome]) -> None:
        """Store outcomes one by one. One that the store cannot take ends its delivery with the reason."""
        for outcome in outcomes:
            try:
                await self._settle(outcome)
            except StoreFailed:
                raise
            except Exception as error:
                self._on_refused(error)
                detail = f"the result could not be stored: {type(error).__name__}"
                await self._settle(Outcome(outcome.key, outcome.attempt, State.UNKNOWN, str(Result.DOUBT), detail))

    async def _settle(self, outcome: Outcome) -> None:
        now_ms = self._clocks.now_ms()
        await self._store.advance([outcome], [], [], now_ms, now_ms + self._pace.lease_ms)

    async def stop(self) -> None:
        """Finish running sends and store their outcomes; nothing new starts. Do not call `tick` afterwards."""
        self._waiting.clear()
        while self.tasks:
            await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
            await self.tick()
        await self.tick()

    def begin_stop(self) -> None:
        """Drop waiting deliveries; `keep_ticking` returns after its current tick."""
        self.is_stopping = True
        self._waiting.clear()
        self.stirred.set()

    def abandon(self) -> None:
        """Stops at once, as a crash does: nothing more is sent or stored."""
        for task in self.tasks:
            task.cancel()

    def _choose_starts(self) -> list[Shipment]:
        now_ms = self._clocks.mono_ms()
        starts: list[Shipment] = []
        while len(self._in_flight) + len(starts) < self._pace.slots and (held := self._waiting.take()):
            if now_ms < held.lease_end_ms:
                starts.append(held.shipment)
            else:  # another worker may own it by now: the store's due rows bring it back
                self._waiting.end(held.shipment)
        return starts

    def _hold_page(self, job: Job, page: Page, inserted: tuple[DeliveryKey, ...], lease_end_ms: int) -> None:
        targets = {(target.rid, target.aid): target for target in page.targets}
        for key in inserted:
            shipment = Shipment(key, job.tenant, targets[key.rid, key.aid], 0, job.expires_ms, priority=job.priority)
            self._hold(Held(shipment, lease_end_ms))
        self.stirred.set()

    def _hold(self, held: Held) -> None:
        """Queue shipments here, or put them off in the store while their host rests."""
        if until_ms := self._waiting.rests_until(held.shipment, self._clocks.mono_ms()):
            self._put_off.append(self._make_put_off(held, until_ms))
        else:
            self._waiting.add(held)

    def _make_put_off(self, held: Held, until_ms: int) -> PutOff:
        shipment = held.shipment
        due_ms = self._clocks.now_ms() + until_ms - self._clocks.mono_ms()
        return PutOff(shipment.key, shipment.attempt, due_ms)

    def _note_pace(self, shipment: Shipment, outcomes: list[Outcome]) -> None:
        """Adjust the lanes' pace by the outcomes: a host that asked to wait, or that accepts sends."""
        mono_ms = self._clocks.mono_ms()
        for outcome in outcomes:
            if outcome.throttle_ms and not outcome.spares_host:
                until_ms = mono_ms + outcome.throttle_ms
                waited = self._waiting.throttle(shipment, until_ms)
                self._put_off += [self._make_put_off(held, until_ms) for held in waited]
            elif outcome.state is State.SENT:
                self._waiting.note_success(shipment, mono_ms)

    def _start(self, held: Held) -> None:
        self._in_flight[held.shipment.key] = held
        task = asyncio.get_running_loop().create_task(self._send(held))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _send(self, held: Held) -> None:
        shipment = held.shipment
        outcomes: list[Outcome] = []
        if self._clocks.mono_ms() >= held.lease_end_ms:
            outcomes = [_give_back(shipment, self._clocks.now_ms())]
        elif self._clocks.now_ms() >= shipment.expires_ms:
            outcomes = [Outcome(shipment.key, shipment.attempt, State.EXPIRED)]
        else:
            outcomes = await self._try_send(shipment)
        self._note_pace(shipment, outcomes)
        self._outcomes += outcomes  # before the row leaves `own`
        del self._in_flight[shipment.key]
        self._waiting.end(shipment)
        self.stirred.set()

    async def _try_send(self, shipment: Shipment) -> list[Outcome]:
        """Call the sender. If it raises anything but NotSent, which it must not, the result is unknown. Both are retried after
        a lease.
        """
        key, attempt = shipment.key, shipment.attempt
        try:
            return list(await self._sender.send([shipment]))
        except NotSent as error:
            retry_at_ms = self._clocks.now_ms() + self._pace.lease_ms
            reason = str(Result.TEMPORARY)
            return [
                Outcome(key, attempt, State.DEFERRED, reason, str(error), retry_at_ms, spares_host=True, throttle_ms=1)
            ]
        except Exception as error:
            retry_at_ms = self._clocks.now_ms() + self._pace.lease_ms
            detail = f"{type(error).__name__}: {error!s:.200}"
            return [Outcome(key, attempt, State.DEFERRED, str(Result.DOUBT), detail, retry_at_ms)]


def _give_back(shipment: Shipment, now_ms: int) -> Outcome:
    """The lease ended before anything was sent, because the store or the machine stopped for a while: no attempt, no doubt. If another
    worker has claimed the delivery, the store ignores this.
    """
    return Outcome(shipment.key, shipment.attempt, State.DEFERRED, retry_at_ms=now_ms, throttle_ms=1, spares_host=True)
