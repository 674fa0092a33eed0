"""Which provider sends an e-mail: by tenant and From domain, then by priority and weight, and away from those that fail.

Owns the providers of this process and their places; sending is the sender's. Invariant: at most `sends_max` e-mails hold
a place at a provider, and one that waits for a place has not started.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ...fanout.waiting import Group
from ...model import DeliveryKey, ProviderState, Shipment
from .provider import Provider, ProviderSettings, domain_of_address

GROUPS_MAX = 10_000
"""How many pairs of tenant and From address are remembered with their providers."""
PROBE_MS = 2_000
"""When an e-mail comes again that met a provider which only tries whether it works."""
TURN_MS_MAX = 1_000
"""How long an e-mail waits for its turn at a provider; one that would wait longer comes again later."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place of an e-mail at a provider, and how long it waits for its turn."""

    provider: Provider
    tenant: str
    turn_ms: float
    """By the clock of the providers; 0: at once."""


class Providers:
    """All providers, by name. They may change while e-mail is sent."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._known: dict[str, Provider] = {}
        self._groups: dict[tuple[str, str], Group] = {}
        self._reserved: dict[DeliveryKey, Place] = {}

    def put(self, settings: ProviderSettings) -> None:
        """Adds or replaces a provider; raises ValueError if its DKIM key is not valid."""
        fresh = Provider(settings, self._now_ms)
        self.remove(settings.name)
        self._known[settings.name] = fresh

    def remove(self, name: str) -> None:
        """Sends over it that are under way are finished."""
        self._groups.clear()
        if old := self._known.pop(name, None):
            old.close()

    def describe(self) -> dict[str, ProviderState]:
        """How each provider is, by name."""
        now_ms = int(self._now_ms())
        return {name: one.breaker.describe(now_ms) for name, one in self._known.items()}

    def close(self) -> None:
        for name in list(self._known):
            self.remove(name)

    def may_send(self, tenant: str, sender: str) -> bool:
        """Whether a tenant has a provider for a From address."""
        return bool(self._find_names(tenant, sender))

    def find_sender(self, tenant: str) -> str:
        """The default From address of a tenant: that of its own provider, or of the first one. Empty: none."""
        usable = [one for one in self._known.values() if one.settings.serves(tenant)]
        best = min(usable, key=lambda one: (not one.settings.tenants, one.settings.priority, one.name), default=None)
        return "" if best is None else best.settings.sender

    @property
    def slots(self) -> int:
        """How many e-mails all of them take at once."""
        return sum(one.settings.sends_max for one in self._known.values())

    def find_group(self, shipment: Shipment) -> Group:
        """The providers that may send an e-mail."""
        return self._find_names(shipment.tenant, shipment.target.sender)

    def is_full(self, group: Group) -> bool:
        """Whether one of these works, and all that work have as many e-mails as they take."""
        now_ms = self._now_ms()
        working = [one for one in self._list(group) if one.works(now_ms)]
        return bool(working) and not any(one.breaker.has_room(now_ms) for one in working)

    def reserve(self, shipment: Shipment) -> bool:
        """Reserve a place for an e-mail; false if its tenant must wait for one. True without a place if no provider works
        or their rates are used up: the e-mail is put off.
        """
        group = self.find_group(shipment)
        if place := self._choose(shipment.tenant, group):
            self._reserved[shipment.key] = place
            return True
        now_ms = self._now_ms()
        return not any(one.works(now_ms) and one.wait_ms() <= TURN_MS_MAX for one in self._list(group))

    def release(self, shipment: Shipment) -> None:
        """Release the place of an e-mail that its sender did not take over."""
        if place := self._reserved.pop(shipment.key, None):
            self.end(place)

    def take(self, shipment: Shipment, sender: str, but: Collection[str] = ()) -> Place | None:
        """The place of the next try of an e-mail, until `end`; None: all providers rest or are full. `but` names those that failed."""
        reserved = self._reserved.pop(shipment.key, None)
        group = self._find_names(shipment.tenant, sender)
        if reserved is not None:
            name = reserved.provider.name
            if name in group and self._known[name] is reserved.provider:
                return reserved
            self.end(reserved)  # its provider was changed since
        return self._choose(shipment.tenant, [name for name in group if name not in but])

    def end(self, place: Place) -> None:
        """The send of an e-mail over a provider has ended."""
        place.provider.end(place.tenant)

    def explain(self, tenant: str, sender: str, but: Collection[str] = ()) -> tuple[str, int]:
        """Why a provider that works has no place for an e-mail, and when it comes again. Empty: no provider works."""
        now_ms = self._now_ms()
        usable = [one for one in self._list(self._find_names(tenant, sender)) if one.name not in but]
        working = [one for one in usable if one.works(now_ms)]
        if not working:
            return "", 0
        first = min(working, key=Provider.wait_ms)
        if first.wait_ms() > TURN_MS_MAX:
            return f"the rate of provider {first.name}", int(first.wait_ms())
        return "every provider is full", PROBE_MS

    def rest_ms(self, tenant: str, sender: str) -> int:
        """How long until a provider of a tenant's From address may be used again, at least `PROBE_MS`."""
        now_ms = self._now_ms()
        rests = [one.breaker.rests_until(now_ms) for one in self._list(self._find_names(tenant, sender))]
        return max(PROBE_MS, min(rests, default=0) - now_ms)

    def is_refused(self, tenant: str, sender: str) -> bool:
        """Whether all providers of a tenant's From address rest because they refuse our login."""
        return all(one.breaker.is_refused for one in self._list(self._find_names(tenant, sender)))

    def _choose(self, tenant: str, group: Iterable[str]) -> Place | None:
        now_ms = self._now_ms()
        ready = [one for one in self._list(group) if one.has_room(tenant, now_ms)]
        # one whose rate is used up gives way, as long as another is free
        free = [one for one in ready if not one.wait_ms()] or [one for one in ready if one.wait_ms() <= TURN_MS_MAX]
        if not free:
            return None
        first = min(one.settings.priority for one in free)
        best = [one for one in free if one.settings.priority == first]
        provider = random.choices(best, [one.settings.weight for one in best])[0]
        return Place(provider, tenant, provider.begin(tenant))

    def _list(self, names: Iterable[str]) -> Sequence[Provider]:
        return [one for name in names if (one := self._known.get(name)) is not None]

    def _find_names(self, tenant: str, sender: str) -> Group:
        """The providers of a tenant's From address; empty: the tenant's default."""
        found = self._groups.get((tenant, sender))
        if found is None:
            domain = domain_of_address(sender or self.find_sender(tenant))
            usable = (one.settings for one in self._known.values())
            found = tuple(sorted(one.name for one in usable if one.serves(tenant) and domain in one.all_domains))
            if len(self._groups) >= GROUPS_MAX:
                self._groups.clear()
            self._groups[tenant, sender] = found
        return found
