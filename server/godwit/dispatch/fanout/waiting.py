"""Shipments that wait to be sent, by group, tenant and lane, each taken in turn.

A shipment's group names the providers that may send it; where none are shared there is one group. Groups, tenants and
lanes each go to the end of their line when one of their shipments is taken, so that a limit that is reached at any level
skips everything below it in one step. Pure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from ..model import DeliveryKey, Priority, Shipment


@dataclass(frozen=True, slots=True)
class Held:
    """A shipment and the end of this worker's lease, by its own clock."""

    shipment: Shipment
    lease_end_ms: int


Group = tuple[str, ...]
"""The names of the providers that may send a shipment; empty where none are shared."""
Line = deque[Held]
Lines = dict[Hashable, Line]
"""The waiting shipments of a tenant in one group, by lane."""


class Waiting:
    """What waits. Empty lines, tenants and groups are not kept."""

    def __init__(self) -> None:
        self.groups: dict[Group, dict[str, Lines]] = {}
        """In the order in which they are served next, at each level."""
        self._by_lane: dict[Hashable, dict[tuple[Group, str], Line]] = {}
        self._tenants: dict[str, dict[int, int]] = {}
        """How many wait of each notification, by tenant."""
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return sum(self._counts.values())

    def __iter__(self) -> Iterator[Held]:
        return (held for places in self._by_lane.values() for line in places.values() for held in line)

    def keys(self) -> Iterator[DeliveryKey]:
        """The keys of all waiting deliveries."""
        return (held.shipment.key for held in self)

    def count(self, tenant: str) -> int:
        """The number of a tenant's waiting shipments."""
        return self._counts.get(tenant, 0)

    def list_notifications(self, tenant: str, least: int) -> list[int]:
        """A tenant's notifications of which at least so many shipments wait."""
        return [nid for nid, count in self._tenants.get(tenant, {}).items() if count >= least]

    @property
    def lanes(self) -> int:
        """The number of lanes in which something waits."""
        return len(self._by_lane)

    def add(self, group: Group, lane: Hashable, held: Held) -> None:
        """Add a shipment at the end of its lane, or at the beginning for high priority."""
        tenant = held.shipment.tenant
        line = self.groups.setdefault(group, {}).setdefault(tenant, {}).setdefault(lane, deque())
        self._by_lane.setdefault(lane, {})[group, tenant] = line
        line.appendleft(held) if held.shipment.priority is Priority.HIGH else line.append(held)
        self._change(tenant, held, 1)

    def take(self, group: Group, tenant: str, lane: Hashable) -> Held:
        """Take the first shipment of a line. The group, its tenant and the lane go to the end."""
        tenants = self.groups.pop(group)
        lines = tenants.pop(tenant)
        line = lines.pop(lane)
        held = line.popleft()
        if line:
            lines[lane] = line
        else:
            self._forget_line(group, tenant, lane)
        if lines:
            tenants[tenant] = lines
        if tenants:
            self.groups[group] = tenants
        self._change(tenant, held, -1)
        return held

    def remove_lane(self, lane: Hashable) -> list[Held]:
        """Remove and return everything that waits in a lane."""
        removed: list[Held] = []
        for group, tenant in list(self._by_lane.get(lane, ())):
            tenants = self.groups[group]
            line = tenants[tenant].pop(lane)
            if not tenants[tenant]:
                del tenants[tenant]
            if not tenants:
                del self.groups[group]
            self._forget_line(group, tenant, lane)
            for held in line:
                self._change(tenant, held, -1)
            removed += line
        return removed

    def clear(self) -> list[Held]:
        """Remove and return everything."""
        removed = list(self)
        self.groups.clear()
        self._by_lane.clear()
        self._tenants.clear()
        self._counts.clear()
        return removed

    def _forget_line(self, group: Group, tenant: str, lane: Hashable) -> None:
        places = self._by_lane[lane]
        del places[group, tenant]
        if not places:
            del self._by_lane[lane]

    def _change(self, tenant: str, held: Held, change: int) -> None:
        notifications, nid = self._tenants.setdefault(tenant, {}), held.shipment.key.nid
        notifications[nid] = notifications.get(nid, 0) + change
        self._counts[tenant] = self._counts.get(tenant, 0) + change
        if not notifications[nid]:
            del notifications[nid]
        if not notifications:
            del self._tenants[tenant], self._counts[tenant]
