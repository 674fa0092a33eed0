"""The rates of accepted notifications and of previews: a token bucket for each tenant with a bound.

For one event loop. A bucket holds one second of the rate, which bounds bursts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ..codes import DispatchCode
from ..errors import RequestRefused

ReadRate = Callable[[str], Awaitable[int]]
TENANTS_MAX = 10_000


class AcceptRates:
    """`read_rate` returns a tenant's quota from the store, at its first use."""

    def __init__(self, read_rate: ReadRate, now_ms: Callable[[], int], what: str = "send {:,} notifications") -> None:
        self._read_rate, self._now_ms, self._what = read_rate, now_ms, what
        self._rates: dict[str, int] = {}
        self._buckets: dict[str, tuple[float, int]] = {}
        self._changes = 0
        """How many quotas were changed: what was read before a change is not cached after it."""

    def set(self, tenant: str, rate: int) -> None:
        """The quota was changed; 0: unlimited."""
        self._changes += 1
        self._rates[tenant] = rate
        self._buckets.pop(tenant, None)

    async def take(self, tenant: str, count: int = 1) -> None:
        """Take `count` notifications from the bucket; raises RequestRefused if it has too few."""
        while tenant not in self._rates:
            changes, read = self._changes, await self._read_rate(tenant)
            if changes != self._changes:
                continue
            if len(self._rates) >= TENANTS_MAX:
                self._rates.clear()
                self._buckets.clear()
            self._rates[tenant] = read
        rate = self._rates[tenant]
        if not rate:
            return
        now_ms = self._now_ms()
        left, since_ms = self._buckets.get(tenant, (float(rate), now_ms))
        left = min(float(rate), left + max(0, now_ms - since_ms) * rate / 1_000)
        if left < min(count, rate):
            self._buckets[tenant] = (left, now_ms)
            raise RequestRefused(DispatchCode.QUOTA_EXCEEDED, f"the tenant may {self._what.format(rate)} a second")
        self._buckets[tenant] = (left - count, now_ms)


def bound_previews(per_second_max: int, now_ms: Callable[[], int]) -> AcceptRates:
    """The same bound for every tenant, on requests that only try what would be sent."""

    async def read_rate(tenant: str) -> int:
        return per_second_max

    return AcceptRates(read_rate, now_ms, "preview or store {:,} templates")
