"""Sends webhooks: one POST each, to addresses that may be reached, without following where an answer points.

Owns the connection pool. An address is checked when a name is resolved, so that a name which changes its address reaches nothing
private. Of an answer the status counts; of its body no more is read than 16 KiB.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Callable, Sequence
from ipaddress import ip_address

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from ...model import Outcome, Result, Shipment
from ...pure.sandbox import read_result
from ..letter import Letters, ReadLetter
from ..outcomes import make_outcome
from .classes import classify, read_retry_after
from .envelope import make_body, make_headers
from .targets import PrivateTarget, check_url, may_reach

BODY_BYTES = 16_384
BODY_S = 1.0


class CheckingResolver(AbstractResolver):
    """Resolves names, and gives only addresses that a webhook may reach."""

    def __init__(self, private: tuple[PrivateTarget, ...]) -> None:
        self._inner = ThreadedResolver()
        self._private = private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        allowed = [one for one in found if may_reach(ip_address(one["host"].partition("%")[0]), port, self._private)]
        if not allowed:
            raise AddressRefused(f"{host} has no address that may be reached")
        return allowed

    async def close(self) -> None:
        await self._inner.close()


class AddressRefused(OSError):
    """A name that resolves to addresses that may not be reached."""


class WebhookSender:
    """The channel's way out. Open it in the event loop that uses it."""

    def __init__(
        self,
        read_letter: ReadLetter,
        private: tuple[PrivateTarget, ...],
        *,
        sends_max: int,
        timeout_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._letters = Letters(read_letter)
        self._private, self._now_ms = private, now_ms
        connector = aiohttp.TCPConnector(limit=sends_max, resolver=CheckingResolver(private), ttl_dns_cache=30)
        self._http = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=timeout_ms / 1_000, sock_connect=timeout_ms / 1_500),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": "Godwit"},
        )

    async def close(self) -> None:
        await self._http.close()

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        """Raises nothing but cancellation."""
        return [await self._send(shipment) for shipment in batch]

    async def _send(self, shipment: Shipment) -> Outcome:
        if (sandbox := read_result("webhook", shipment.target.value)) is not None:
            return self._tell(shipment, sandbox, "sandbox")
        letter = await self._letters.find(shipment.key.nid)
        problem = check_url(shipment.target.value, self._private)
        if letter is None or problem:
            return self._tell(shipment, Result.CONTENT, problem or "the notification is gone")
        body = make_body(shipment, letter)
        headers = make_headers(shipment, body, self._now_ms() // 1_000)
        try:
            url = URL(shipment.target.value, encoded=False)
            async with self._http.post(url, data=body, headers=headers, allow_redirects=False) as answered:
                after_ms = read_retry_after(answered.headers.get("Retry-After"))
                await _drop_body(answered)
                return self._tell(shipment, classify(answered.status), f"HTTP {answered.status}", after_ms)
        except aiohttp.ConnectionTimeoutError:
            return self._tell(shipment, Result.TEMPORARY, "no connection in time")
        except aiohttp.ClientConnectorError as error:  # before anything left
            is_refused = isinstance(error.__cause__ or error.os_error, AddressRefused)
            return self._tell(shipment, Result.CONTENT if is_refused else Result.TEMPORARY, f"{error.os_error!s:.200}")
        except aiohttp.InvalidURL:
            return self._tell(shipment, Result.CONTENT, "the URL is not valid")
        except (TimeoutError, aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            return self._tell(shipment, Result.DOUBT, f"{type(error).__name__}: {error!s:.200}")

    def _tell(self, shipment: Shipment, result: Result, detail: str, after_ms: int = 0) -> Outcome:
        return make_outcome(shipment, result, detail, self._now_ms(), random.random(), after_ms)


async def _drop_body(answered: aiohttp.ClientResponse) -> None:
    """A short body is read, so that the connection can be used again; the rest of a long or slow one is not waited for."""
    try:
        async with asyncio.timeout(BODY_S):
            await answered.content.read(BODY_BYTES)
    except (TimeoutError, aiohttp.ClientError):
        pass
    if not answered.content.at_eof():
        answered.close()


def host_of(shipment: Shipment) -> tuple[str, str]:
    """The lane of a webhook: its tenant and host."""
    try:
        return shipment.tenant, URL(shipment.target.value).host or ""
    except ValueError:
        return shipment.tenant, ""
