"""One provider of e-mail: a relay with its connections, its DKIM key and its rate.

Owns the pool of connections, and knows whether the provider rests. Its settings say which tenants may use it, and for which From.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import aiosmtplib

from ....logs import read_logger
from ...pure.breaker import Breaker
from .classes import hide_addresses
from .dkim import DkimKey, parse_dkim_key

IDLE_MAX = 16
IDLE_MS_MAX = 60_000
"""How long a connection is kept unused: relays close theirs after minutes, some without a word."""
CHECK_S = 2.0
"""How long a kept connection may take to show that it works: one that does not is replaced."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """The settings of a provider. Its `repr` contains no secrets."""

    name: str
    relay: str
    sender: str
    """The From address of e-mails that do not set one."""
    security: str = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    domains: tuple[str, ...] = ()
    """From domains besides that of `sender`."""
    tenants: tuple[str, ...] = ()
    """The tenants that may use it; empty: every tenant."""
    dkim_selector: str = "godwit"
    dkim_key: str = field(default="", repr=False)
    priority: int = 10
    """Providers with the lowest number go first."""
    weight: int = 1
    """Its share among those of the same priority."""
    rate_per_s: int = 0
    """Most e-mails in a second; 0: no limit."""
    sends_max: int = 16
    timeout_ms: int = 30_000

    @property
    def all_domains(self) -> frozenset[str]:
        """The domains that it may send from, in lower case."""
        return frozenset(one.lower() for one in (*self.domains, domain_of_address(self.sender)))

    def serves(self, tenant: str) -> bool:
        """Whether a tenant may use it."""
        return not self.tenants or tenant in self.tenants


class Provider:
    """Connections to one relay. `now_ms` is a clock that is never set back. Raises ValueError if the DKIM key is not valid."""

    def __init__(self, settings: ProviderSettings, now_ms: Callable[[], int]) -> None:
        self.settings, self._now_ms = settings, now_ms
        self.key: DkimKey | None = parse_dkim_key(settings.dkim_key.encode()) if settings.dkim_key else None
        self.breaker = Breaker(settings.sends_max)
        self._host, _, port = settings.relay.rpartition(":")
        self._port = int(port)
        self._idle: list[tuple[aiosmtplib.SMTP, float]] = []
        self._in_flight: dict[str, int] = {}
        """One for each tenant."""
        self._next_ms = 0.0
        self._is_closed = False

    @property
    def name(self) -> str:
        return self.settings.name

    def close(self) -> None:
        """Close idle connections; those in use are closed when they are returned."""
        self._is_closed = True
        while self._idle:
            self._idle.pop()[0].close()

    def wait_ms(self) -> float:
        """How long its rate has the next e-mail wait."""
        return max(0.0, self._next_ms - self._now_ms()) if self.settings.rate_per_s else 0.0

    def works(self, now_ms: int) -> bool:
        """Whether it neither rests nor only tries whether it works."""
        return not self.breaker.is_probing and not self.breaker.rests_until(now_ms)

    def has_room(self, tenant: str, now_ms: int) -> bool:
        """Whether another e-mail of a tenant may begin. If tenants share a provider, no single tenant can use its last quarter."""
        most = self.settings.sends_max
        share = most if len(self.settings.tenants) == 1 else most - most // 4
        return self.breaker.has_room(now_ms) and self._in_flight.get(tenant, 0) < share

    def begin(self, tenant: str) -> float:
        """An e-mail of a tenant holds a place until `end`. Returns when its turn is, as the rate asks; 0: at once."""
        self.breaker.begin()
        self._in_flight[tenant] = self._in_flight.get(tenant, 0) + 1
        if not self.settings.rate_per_s:
            return 0.0
        turn_ms = self._next_ms if self.wait_ms() else 0.0
        self._next_ms = max(self._next_ms, self._now_ms()) + 1_000 / self.settings.rate_per_s
        return turn_ms

    def end(self, tenant: str) -> None:
        """The place of a tenant's e-mail is free."""
        self.breaker.end()
        self._in_flight[tenant] -= 1
        if not self._in_flight[tenant]:
            del self._in_flight[tenant]

    async def wait_turn(self, turn_ms: float) -> bool:
        """Wait for a turn; whether it was necessary."""
        wait_ms = turn_ms - self._now_ms() if turn_ms else 0.0
        if wait_ms <= 0:
            return False
        await asyncio.sleep(wait_ms / 1_000)
        return True

    async def take_relay(self) -> aiosmtplib.SMTP:
        """A connection that is ready for a message: one that was kept, if it still answers, or a new one."""
        settings = self.settings
        if kept := await self._take_kept(min(CHECK_S, settings.timeout_ms / 1_000)):
            return kept
        relay = aiosmtplib.SMTP(
            hostname=self._host,
            port=self._port,
            timeout=settings.timeout_ms / 1_000,
            use_tls=settings.security == "tls",
            start_tls=settings.security == "starttls",
        )
        try:
            await relay.connect()
            if settings.user:
                await relay.login(settings.user, settings.password)
        except BaseException:
            relay.close()
            raise
        return relay

    async def _take_kept(self, check_s: float) -> aiosmtplib.SMTP | None:
        """The connection that was used last, if it still answers. If it does not, those that were idle longer are closed, too."""
        while self._idle:
            kept, since_ms = self._idle.pop()
            if kept.is_connected and self._now_ms() < since_ms + IDLE_MS_MAX:
                try:
                    await kept.rset(timeout=check_s)
                    return kept
                except aiosmtplib.SMTPTimeoutError:
                    older = [one for one in self._idle if one[1] <= since_ms]
                    self._idle = [one for one in self._idle if one[1] > since_ms]
                    for relay, _ in older:
                        relay.close()
                except (aiosmtplib.SMTPException, OSError):
                    pass
            kept.close()
        return None

    def give_back(self, relay: aiosmtplib.SMTP | None) -> None:
        """After an answer the connection is as good as before, unless the relay is leaving (421)."""
        if relay is None:
            return
        if relay.is_connected and not self._is_closed and len(self._idle) < max(IDLE_MAX, self.settings.sends_max):
            self._idle.append((relay, self._now_ms()))
        else:
            relay.close()

    def note_success(self) -> None:
        """The provider answered, so it works; its answer to the e-mail does not matter here."""
        self.breaker.note_success(self._now_ms())

    def note_failure(self, detail: str, *, is_final: bool = False) -> None:
        """The provider itself failed."""
        reason = hide_addresses(detail)
        if self.breaker.note_failure(reason, self._now_ms(), is_final=is_final):
            read_logger().error("dispatch_provider_rests", provider=self.name, reason=reason)


def domain_of_address(address: str) -> str:
    """The domain of an e-mail address."""
    return address.rpartition("@")[2].lower()
