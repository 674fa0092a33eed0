"""What waits to be sent, in lanes: one for each tenant and host, taken in turn.

A slow host fills its own lane and nobody else's. While other lanes wait, a lane has at most `per_lane_max` sends in
flight, and alone half of the slots; a tenant never has the last quarter of them. So others find a slot. A lane whose host
asked to wait is empty until that time; then it starts with one send, and each success doubles the number. What shares a
provider shares a group, which has at most as many sends in flight as the provider takes: they wait here, and not in the
slots of others. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from ..model import DeliveryKey, Priority, Shipment

THROTTLED_MAX = 10_000
"""How many throttled lanes are remembered."""


@dataclass(frozen=True, slots=True)
class Held:
    """A shipment and the end of this worker's lease, by its own clock."""

    shipment: Shipment
    lease_end_ms: int


@dataclass(slots=True)
class Throttle:
    """A lane whose host asked to wait: until when, and how many sends may run afterwards."""

    until_ms: int
    sends_max: int = 1


Group = tuple[Hashable, int]
"""What a shipment shares with others, and how many of them may be in flight."""


class Lanes:
    """The lanes in the order in which they are served next."""

    def __init__(
        self,
        lane_of: Callable[[Shipment], Hashable],
        per_lane_max: int,
        slots: int,
        group_of: Callable[[Shipment], Group] | None = None,
    ) -> None:
        self._lane_of, self._group_of = lane_of, group_of
        self.resize(per_lane_max, slots)
        self._grouped: dict[DeliveryKey, Hashable] = {}
        """The group of each shipment in flight: another by now, if providers have changed."""
        self._in_group: dict[Hashable, int] = {}
        self._in_flight_of: dict[str, int] = {}
        self._waiting: dict[Hashable, deque[Held]] = {}
        self._in_flight: dict[Hashable, int] = {}
        self._tenants: dict[str, int] = {}
        self._throttled: dict[Hashable, Throttle] = {}

    def resize(self, per_lane_max: int, slots: int) -> None:
        """How many sends may be in flight from now on: of a lane while others wait, and in all."""
        self._per_lane_max = per_lane_max
        self._alone_max = max(per_lane_max, slots // 2)
        self._per_tenant_max = slots - slots // 4

    def __len__(self) -> int:
        return sum(self._tenants.values())

    def count(self, tenant: str) -> int:
        """The number of a tenant's waiting shipments."""
        return self._tenants.get(tenant, 0)

    def keys(self) -> Iterator[DeliveryKey]:
        """The keys of all waiting deliveries."""
        return (held.shipment.key for lane in self._waiting.values() for held in lane)

    def add(self, held: Held) -> None:
        """Add a shipment at the end of its lane, or at the beginning for high priority."""
        waiting = self._waiting.setdefault(self._lane_of(held.shipment), deque())
        waiting.appendleft(held) if held.shipment.priority is Priority.HIGH else waiting.append(held)
        self._change(held.shipment.tenant, 1)

    def take(self) -> Held | None:
        """The next shipment that may start. It keeps its slot until `end`, and its lane goes to the end of the line."""
        all_lanes_max = self._alone_max if len(self._waiting) == 1 else self._per_lane_max
        for lane, waiting in self._waiting.items():
            throttle = self._throttled.get(lane)
            lane_max = all_lanes_max if throttle is None else min(all_lanes_max, throttle.sends_max)
            is_tenant_full = self._in_flight_of.get(waiting[0].shipment.tenant, 0) >= self._per_tenant_max
            if is_tenant_full or self._in_flight.get(lane, 0) >= lane_max or self._is_group_full(waiting[0].shipment):
                continue
            held = waiting.popleft()
            del self._waiting[lane]
            if waiting:
                self._waiting[lane] = waiting
            self._change(held.shipment.tenant, -1)
            self._begin(held.shipment)
            return held
        return None

    def end(self, shipment: Shipment) -> None:
        """A send has ended: its slot is free."""
        lane = self._lane_of(shipment)
        self._in_flight[lane] -= 1
        if not self._in_flight[lane]:
            del self._in_flight[lane]
        self._in_flight_of[shipment.tenant] -= 1
        if not self._in_flight_of[shipment.tenant]:
            del self._in_flight_of[shipment.tenant]
        if (group := self._grouped.pop(shipment.key, None)) is not None:
            self._in_group[group] -= 1
            if not self._in_group[group]:
                del self._in_group[group]

    def throttle(self, shipment: Shipment, until_ms: int) -> list[Held]:
        """The lane of a shipment rests until then. Returns its waiting shipments, which the store makes due at that time."""
        lane = self._lane_of(shipment)
        before = self._throttled.pop(lane, None)
        self._throttled[lane] = Throttle(max(until_ms, 0 if before is None else before.until_ms))
        if len(self._throttled) > THROTTLED_MAX:  # the oldest: it is asked again, and may ask to wait again
            del self._throttled[next(iter(self._throttled))]
        waiting = list(self._waiting.pop(lane, ()))
        for held in waiting:
            self._change(held.shipment.tenant, -1)
        return waiting

    def rests_until(self, shipment: Shipment, now_ms: int) -> int:
        """When the lane of a shipment may send again; 0: now."""
        throttle = self._throttled.get(self._lane_of(shipment))
        return 0 if throttle is None or throttle.until_ms <= now_ms else throttle.until_ms

    def note_success(self, shipment: Shipment, now_ms: int) -> None:
        """A send of a throttled lane succeeded: the lane may run twice as many, up to the normal limit."""
        lane = self._lane_of(shipment)
        throttle = self._throttled.get(lane)
        if throttle is None or throttle.until_ms > now_ms:
            return
        throttle.sends_max *= 2
        if throttle.sends_max >= self._per_lane_max:
            del self._throttled[lane]

    def clear(self) -> None:
        """Drop all waiting shipments; the store makes them due when their leases end."""
        self._waiting.clear()
        self._tenants.clear()

    def _change(self, tenant: str, change: int) -> None:
        self._tenants[tenant] = self._tenants.get(tenant, 0) + change
        if not self._tenants[tenant]:
            del self._tenants[tenant]

    def _begin(self, shipment: Shipment) -> None:
        lane = self._lane_of(shipment)
        self._in_flight[lane] = self._in_flight.get(lane, 0) + 1
        self._in_flight_of[shipment.tenant] = self._in_flight_of.get(shipment.tenant, 0) + 1
        if self._group_of is not None:
            group = self._grouped[shipment.key] = self._group_of(shipment)[0]
            self._in_group[group] = self._in_group.get(group, 0) + 1

    def _is_group_full(self, shipment: Shipment) -> bool:
        if self._group_of is None:
            return False
        group, most = self._group_of(shipment)
        return self._in_group.get(group, 0) >= most
