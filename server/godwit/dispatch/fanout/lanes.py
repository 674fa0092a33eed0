"""What waits to be sent, in lanes: one for each tenant and host, taken in turn.

A slow host fills only its own lane. While other lanes wait, a lane has at most `per_lane_max` sends in
flight, and alone half of the slots; a tenant never has the last quarter of them. So others find a slot. A lane whose host
asked to wait is empty until that time; then it starts with one send, and each success doubles the number. Where shipments
need a provider, each has a place at one before it starts: those of a slow provider wait here, and not in the slots of
others. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ..model import DeliveryKey, Shipment
from .waiting import Group, Held, Waiting

THROTTLED_MAX = 10_000
"""How many throttled lanes are remembered."""


@dataclass(slots=True)
class Throttle:
    """A lane whose host asked to wait: until when, and how many sends may run afterwards."""

    until_ms: int
    sends_max: int = 1


class Places(Protocol):
    """The places at the providers of a channel."""

    def find_group(self, shipment: Shipment) -> Group: ...

    def is_full(self, group: Group) -> bool:
        """Whether nothing of a group can start before a send ends."""
        ...

    def reserve(self, shipment: Shipment) -> bool:
        """Reserve a place; false if the tenant must wait for one. True without a place if none of the providers works."""
        ...

    def release(self, shipment: Shipment) -> None:
        """Release a shipment's place if the sender did not take it over."""
        ...


class Lanes:
    """The lanes in the order in which they are served next."""

    def __init__(
        self,
        lane_of: Callable[[Shipment], Hashable],
        per_lane_max: int,
        slots: int,
        places: Places | None = None,
    ) -> None:
        self._lane_of, self._places = lane_of, places
        self._waiting = Waiting()
        self._in_flight_of: dict[str, int] = {}
        self._in_flight: dict[Hashable, int] = {}
        self._throttled: dict[Hashable, Throttle] = {}
        self.resize(per_lane_max, slots)

    def resize(self, per_lane_max: int, slots: int) -> None:
        """How many sends may be in flight from now on: of a lane while others wait, and in all. Providers may have changed."""
        self._per_lane_max = per_lane_max
        self._alone_max = max(per_lane_max, slots // 2)
        self._per_tenant_max = slots - slots // 4
        for held in self._waiting.clear() if self._places is not None else ():
            self.add(held)

    def __len__(self) -> int:
        return len(self._waiting)

    def count(self, tenant: str) -> int:
        """The number of a tenant's waiting shipments."""
        return self._waiting.count(tenant)

    def list_notifications(self, tenant: str, least: int) -> list[int]:
        """A tenant's notifications of which at least so many shipments wait."""
        return self._waiting.list_notifications(tenant, least)

    def keys(self) -> Iterator[DeliveryKey]:
        """The keys of all waiting deliveries."""
        return self._waiting.keys()

    def add(self, held: Held) -> None:
        """Add a shipment at the end of its lane, or at the beginning for high priority."""
        group = () if self._places is None else self._places.find_group(held.shipment)
        self._waiting.add(group, self._lane_of(held.shipment), held)

    def take(self) -> Held | None:
        """The next shipment that may start. It keeps its slot until `end`."""
        place = self._find_next()
        if place is None:
            return None
        held = self._waiting.take(*place)
        self._begin(held.shipment)
        return held

    def end(self, shipment: Shipment) -> None:
        """A send has ended: its slot is free."""
        lane = self._lane_of(shipment)
        self._in_flight[lane] -= 1
        if not self._in_flight[lane]:
            del self._in_flight[lane]
        self._in_flight_of[shipment.tenant] -= 1
        if not self._in_flight_of[shipment.tenant]:
            del self._in_flight_of[shipment.tenant]
        if self._places is not None:
            self._places.release(shipment)

    def throttle(self, shipment: Shipment, until_ms: int) -> list[Held]:
        """The lane of a shipment rests until then. Returns its waiting shipments, which the store makes due at that time."""
        lane = self._lane_of(shipment)
        before = self._throttled.pop(lane, None)
        self._throttled[lane] = Throttle(max(until_ms, 0 if before is None else before.until_ms))
        if len(self._throttled) > THROTTLED_MAX:  # the oldest: it is asked again, and may ask to wait again
            del self._throttled[next(iter(self._throttled))]
        return self._waiting.remove_lane(lane)

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

    def _find_next(self) -> tuple[Group, str, Hashable] | None:
        """Group, tenant and lane of the next shipment. It has its place at a provider."""
        for group, tenants in self._waiting.groups.items():
            if self._places is not None and self._places.is_full(group):
                continue
            for tenant, lines in tenants.items():
                if self._places is None and self._in_flight_of.get(tenant, 0) >= self._per_tenant_max:
                    continue
                for lane, line in lines.items():
                    if self._in_flight.get(lane, 0) >= self._lane_max(lane):
                        continue
                    if self._places is not None and not self._places.reserve(line[0].shipment):
                        break  # the tenant's other shipments of this group would wait, too
                    return group, tenant, lane
        return None

    def _lane_max(self, lane: Hashable) -> int:
        most = self._alone_max if self._waiting.lanes == 1 else self._per_lane_max
        throttle = self._throttled.get(lane)
        return most if throttle is None else min(most, throttle.sends_max)

    def _begin(self, shipment: Shipment) -> None:
        lane = self._lane_of(shipment)
        self._in_flight[lane] = self._in_flight.get(lane, 0) + 1
        self._in_flight_of[shipment.tenant] = self._in_flight_of.get(shipment.tenant, 0) + 1
