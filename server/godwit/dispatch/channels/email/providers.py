"""Which provider sends an e-mail: by tenant and From domain, then by priority and weight, and away from those that fail.

Owns the providers of this process; sending is the sender's.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Collection, Hashable, Sequence

from ...model import ProviderState
from .provider import Provider, ProviderSettings, domain_of_address

ROOM_S = 1.0
SLOTS_MAX = 2_000
PROBE_MS = 2_000
"""When an e-mail comes again that met a provider which only tries whether it works."""


class Providers:
    """All providers, by name. They may change while e-mail is sent."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._known: dict[str, Provider] = {}
        self._freed = asyncio.Event()

    def put(self, settings: ProviderSettings) -> None:
        """Adds or replaces a provider; raises ValueError where its DKIM key is not one."""
        fresh = Provider(settings, self._now_ms)
        self.remove(settings.name)
        self._known[settings.name] = fresh

    def remove(self, name: str) -> None:
        """What is being sent over it is finished."""
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
        return bool(self._list_usable(tenant, sender))

    def find_sender(self, tenant: str) -> str:
        """The From address of a tenant's e-mails that name none: that of a provider of its own, or of the first one. Empty: none."""
        usable = [one for one in self._known.values() if one.settings.serves(tenant)]
        best = min(usable, key=lambda one: (not one.settings.tenants, one.settings.priority, one.name), default=None)
        return "" if best is None else best.settings.sender

    def choose(self, tenant: str, sender: str, but: Collection[str] = ()) -> Provider | None:
        """The provider of the next e-mail; None: all of them rest or are full. `but` names those that have just failed."""
        now_ms = self._now_ms()
        ready = [
            one for one in self._list_usable(tenant, sender) if one.name not in but and one.breaker.has_room(now_ms)
        ]
        if not ready:
            return None
        # one whose rate is used up gives way, as long as another is free
        free = [one for one in ready if not one.wait_ms()]
        first = min(one.settings.priority for one in free or ready)
        best = [one for one in free or ready if one.settings.priority == first]
        return random.choices(best, [one.settings.weight for one in best])[0]

    def is_full(self, tenant: str, sender: str, but: Collection[str] = ()) -> bool:
        """Whether one works that has as many e-mails as it takes: it has room soon."""
        now_ms = self._now_ms()
        return any(
            one.name not in but and not one.breaker.is_probing and not one.breaker.rests_until(now_ms)
            for one in self._list_usable(tenant, sender)
        )

    @property
    def slots(self) -> int:
        """How many e-mails all of them take at once."""
        return min(SLOTS_MAX, sum(one.settings.sends_max for one in self._known.values()))

    def find_group(self, tenant: str, sender: str) -> tuple[Hashable, int]:
        """The providers that a tenant's From address may use (empty: the tenant's default), and how many e-mails they take at once."""
        usable = self._list_usable(tenant, sender or self.find_sender(tenant))
        return tuple(sorted(one.name for one in usable)), max(1, sum(one.settings.sends_max for one in usable))

    def end(self, provider: Provider) -> None:
        """An e-mail is no longer sent over a provider: another may be."""
        provider.breaker.end()
        self._freed.set()

    async def wait_for_room(self) -> None:
        """Until an e-mail ended somewhere, for a while at most."""
        self._freed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ROOM_S):
                await self._freed.wait()

    def rest_ms(self, tenant: str, sender: str) -> int:
        """How long until a provider of a tenant's From address may be used again, at least `PROBE_MS`."""
        now_ms = self._now_ms()
        rests = [one.breaker.rests_until(now_ms) for one in self._list_usable(tenant, sender)]
        return max(PROBE_MS, min(rests, default=0) - now_ms)

    def is_refused(self, tenant: str, sender: str) -> bool:
        """Whether all providers of a tenant's From address rest because they refuse our login."""
        return all(one.breaker.is_refused for one in self._list_usable(tenant, sender))

    def _list_usable(self, tenant: str, sender: str) -> Sequence[Provider]:
        domain = domain_of_address(sender)
        return [
            one for one in self._known.values() if one.settings.serves(tenant) and domain in one.settings.all_domains
        ]
