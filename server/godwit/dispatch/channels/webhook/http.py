"""One HTTP POST to an allowed address, without redirects.

Owns the connection pool. Addresses are checked when a name is resolved, so that a name that changes its address reaches
no private network. Only the status of an answer counts; at most 16 KiB of its body are read.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from contextvars import ContextVar
from ipaddress import ip_address
from types import SimpleNamespace

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from ...clock import now_ms
from ...model import Result
from .classes import classify, read_retry_after
from .names import Names
from .targets import PrivateTarget, check_url, may_reach

BODY_BYTES = 16_384
BODY_S = 1.0
_TENANT: ContextVar[str] = ContextVar("tenant", default="")
"""Whose request this is: a connection's lookups count for it."""


class CheckingResolver(AbstractResolver):
    """Resolves names to addresses that a webhook may reach."""

    def __init__(self, private: tuple[PrivateTarget, ...], timeout_s: float) -> None:
        self._names, self._private = Names(timeout_s), private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        allowed: list[ResolveResult] = []
        for kind, _, proto, _, address in await self._names.find(_TENANT.get(), host, port, family):
            scope = f"%{address[3]}" if kind == socket.AF_INET6 and address[3] else ""
            if may_reach(ip_address(address[0].partition("%")[0]), port, self._private):
                at, flags = address[0].partition("%")[0] + scope, socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
                allowed.append(ResolveResult(hostname=host, host=at, port=port, family=kind, proto=proto, flags=flags))
        if not allowed:
            raise AddressRefused("the host has no address that may be reached")
        return allowed

    async def close(self) -> None:
        """Nothing is open: a lookup's thread ends by itself."""


class AddressRefused(OSError):
    """A name resolved to addresses that must not be reached."""


class HttpPoster:
    """A pool of connections, opened at the first request; one that was never used needs no close."""

    def __init__(self, private: tuple[PrivateTarget, ...], *, sends_max: int, timeout_ms: int) -> None:
        self._private, self._sends_max, self._timeout_ms = private, sends_max, timeout_ms
        self._http: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._http is None:
            resolver = CheckingResolver(self._private, self._timeout_ms / 3_000)
            trace = aiohttp.TraceConfig()
            trace.on_request_headers_sent.append(_note_sent)
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._sends_max, resolver=resolver, ttl_dns_cache=30),
                timeout=aiohttp.ClientTimeout(total=self._timeout_ms / 1_000, sock_connect=self._timeout_ms / 1_500),
                trace_configs=[trace],
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                headers={"User-Agent": "Godwit"},
            )
        return self._http

    async def post(
        self, url: str, body: bytes, headers: dict[str, str], *, tenant: str = ""
    ) -> tuple[Result, str, int]:
        """Send one POST of a tenant. Returns its result, a sentence, and the Retry-After. Raises only cancellation."""
        if problem := check_url(url, self._private):
            return Result.CONTENT, problem, 0
        _TENANT.set(tenant)
        sent = asyncio.Event()
        try:
            target = URL(url, encoded=False)
            async with self._open().post(
                target, data=body, headers=headers, allow_redirects=False, trace_request_ctx=sent
            ) as answered:
                after_ms = read_retry_after(answered.headers.get("Retry-After"), now_ms())
                await _drop_body(answered)
                return classify(answered.status, asks_to_wait=after_ms > 0), f"HTTP {answered.status}", after_ms
        except aiohttp.ConnectionTimeoutError:
            return Result.TEMPORARY, "no connection in time", 0
        except aiohttp.ClientConnectorError as error:  # before anything left
            is_refused = isinstance(error.__cause__ or error.os_error, AddressRefused)
            return Result.CONTENT if is_refused else Result.TEMPORARY, describe(error.os_error, target), 0
        except (
            aiohttp.InvalidURL,
            ValueError,
        ):  # also a host that no name can be: an empty label, or one over 63 characters
            return Result.CONTENT, "the URL is not valid", 0
        except (TimeoutError, aiohttp.ClientError, OSError, asyncio.IncompleteReadError) as error:
            return Result.DOUBT if sent.is_set() else Result.TEMPORARY, describe(error, target), 0


async def _note_sent(session: object, context: SimpleNamespace, params: object) -> None:
    """The request begins to leave; until then a failure leaves no doubt."""
    context.trace_request_ctx.set()


def describe(error: Exception, target: URL) -> str:
    """An error without anything of the URL, because it is kept longer than the address may be. What an HTTP error quotes is
    left out: it is the request's URL, or an answer that may repeat it.
    """
    kind = type(error).__name__
    if isinstance(error, aiohttp.ClientResponseError):
        return f"{kind}: {error.status}" if error.status else kind
    if not isinstance(error, OSError) or isinstance(error, aiohttp.ServerDisconnectedError):
        return kind
    is_system = (error.errno or 0) > 0 and not isinstance(error, ssl.SSLError)
    text = os.strerror(error.errno or 0) if is_system else str(error)  # asyncio's text has the host's address
    for host in {target.host or "", target.raw_host or ""} - {""}:
        text = re.sub(re.escape(host), "(host)", text, flags=re.IGNORECASE)
    return f"{kind}: {text:.200}" if text else kind


async def _drop_body(answered: aiohttp.ClientResponse) -> None:
    """Read a short body, so that the connection can be reused; do not wait for a long or slow one."""
    if answered.content.at_eof():  # it came with the head
        return
    try:
        async with asyncio.timeout(BODY_S):
            await answered.content.read(BODY_BYTES)
    except (TimeoutError, aiohttp.ClientError):
        pass
    if not answered.content.at_eof():
        answered.close()
