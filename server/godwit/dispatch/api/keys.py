"""API keys: the caller's tenant and scopes.

A key is 256 random bits, stored as its digest. Known keys are cached. An address that sends too many wrong keys is
refused for the rest of the minute, without a lookup.
A test key sends, sees what it sent, and manages receivers of the sandbox. Everything else belongs to the live keys of its
tenant: a new route is refused until it is listed here.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from aiohttp import web

from ..codes import DispatchCode
from ..errors import RequestRefused
from ..pure.clients import Network, find_client
from ..stores.sqlite import ending
from ..stores.sqlite.store import SqliteStore
from .openapi import show_path

PREFIX = "gwk_"
TEST_PREFIX = "gwt_"
REMEMBERED_MAX = 10_000
MINUTE_MS = 60_000
SCOPES = ("send", "read", "manage", "events", "admin", "operator")
SANDBOX = "sandbox:"
"""How the names of its receivers begin."""
_SHARED = {
    ("POST", "/v1/notifications"),
    ("POST", "/v1/notifications/batch"),
    ("POST", "/v1/notifications/check"),
    ("GET", "/v1/templates"),
    ("GET", "/v1/templates/{template}"),
    ("POST", "/v1/templates/{template}/preview"),
    ("GET", "/v1/categories"),
    ("GET", "/v1/categories/{category}"),
    ("GET", "/v1/groups/{group}"),
}
"""Sending, and reading what content needs."""
_OWN = {
    ("PUT", "/v1/notifications/{id}"),
    ("GET", "/v1/notifications/{id}"),
    ("GET", "/v1/notifications/{id}/deliveries"),
    ("GET", "/v1/deliveries/{delivery}"),
    ("POST", "/v1/notifications/{id}/cancel"),
    ("POST", "/v1/notifications/{id}/recall"),
    ("POST", "/v1/notifications/{id}/resume"),
}
"""Their handlers call `check_own`; an accepted notification never changes."""
FindKey = Callable[[bytes], Awaitable[tuple[str, str, bool] | None]]


class Caller(NamedTuple):
    """The caller that a key identifies."""

    tenant: str
    scopes: frozenset[str]
    is_test: bool = False
    """A test key: it reaches sandbox addresses only."""


def make_key(*, is_test: bool = False) -> str:
    """A new key."""
    return (TEST_PREFIX if is_test else PREFIX) + secrets.token_urlsafe(32)


def digest_key(key: str) -> bytes:
    """The digest of a key, which is stored."""
    return hashlib.sha256(key.encode(errors="surrogateescape")).digest()  # a header may have bytes that are not UTF-8


class KeyRing:
    """Finds callers by their keys. For one event loop."""

    def __init__(
        self, find: FindKey, wrong_per_minute_max: int, now_ms: Callable[[], int], proxies: Sequence[Network] = ()
    ) -> None:
        """`proxies` are trusted to name the client's address, by which wrong keys are counted."""
        self._proxies = proxies
        self._find, self._wrong_max, self._now_ms = find, wrong_per_minute_max, now_ms
        self._known: OrderedDict[bytes, Caller] = OrderedDict()
        self._forgotten = 0
        """How many keys were deleted: what was read before a deletion is not cached after it."""
        self._wrong: dict[str, int] = {}
        self._minute = 0

    async def read_caller(self, authorization: str, address: str, scope: str) -> Caller:
        """The caller of a request; raises RequestRefused."""
        kind, _, key = authorization.partition(" ")
        if kind.lower() != "bearer" or not key:
            raise RequestRefused(DispatchCode.API_KEY_MISSING)
        if self._is_barred(address):
            raise RequestRefused(DispatchCode.ATTEMPTS_TOO_MANY)
        caller = await self._find_caller(digest_key(key.strip()))
        if caller is None:
            self._wrong[address] = self._wrong.get(address, 0) + 1
            raise RequestRefused(DispatchCode.API_KEY_INVALID)
        is_admin = "admin" in caller.scopes and scope != "operator"
        if scope not in caller.scopes and not is_admin:
            raise RequestRefused(DispatchCode.SCOPE_MISSING, f"this request needs the scope {scope!r}")
        return caller

    async def read_request(self, request: web.Request, scope: str) -> Caller:
        """The caller of a request; raises RequestRefused."""
        address = find_client(request.remote or "", request.headers.getall("X-Forwarded-For", ()), self._proxies)
        caller = await self.read_caller(request.headers.get("Authorization", ""), address, scope)
        if caller.is_test:
            check_route(request)
        return caller

    async def read_tenant(self, request: web.Request, scope: str) -> str:
        """The tenant of a request; raises RequestRefused."""
        return (await self.read_request(request, scope)).tenant

    def forget(self, digest: bytes) -> None:
        """Remove a deleted key from the cache."""
        self._forgotten += 1
        self._known.pop(digest, None)

    async def _find_caller(self, digest: bytes) -> Caller | None:
        known = self._known.get(digest)
        if known is not None:
            self._known.move_to_end(digest)
            return known
        forgotten = self._forgotten
        row = await self._find(digest)
        if row is None:
            return None
        caller = Caller(row[0], frozenset(row[1].split()), row[2])
        if self._forgotten != forgotten:
            return caller
        self._known[digest] = caller
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)
        return caller

    def _is_barred(self, address: str) -> bool:
        minute = self._now_ms() // MINUTE_MS
        if minute != self._minute:
            self._minute, self._wrong = minute, {}
        return self._wrong.get(address, 0) >= self._wrong_max


def check_route(request: web.Request) -> None:
    """Raises RequestRefused if a test key may not use the route, or not for this receiver."""
    resource = request.match_info.route.resource
    path = "" if resource is None else show_path(resource.canonical)
    route = request.method, path
    if route in _SHARED or route in _OWN:
        return
    if path == "/v1/receivers":
        name = request.query.get("prefix", "")
    else:
        name = request.match_info.get("receiver", "") if path.startswith("/v1/receivers/") else ""
    if not name.startswith(SANDBOX):
        detail = f"a test key sends, sees what it sent, and manages receivers whose names begin with {SANDBOX}"
        raise RequestRefused(DispatchCode.TEST_KEY_FORBIDDEN, detail)


def check_receiver_name(name: str) -> None:
    """Raises RequestRefused where a test key would create or change a live receiver with its notification."""
    if not name.startswith(SANDBOX):
        detail = f"a test key creates only receivers whose names begin with {SANDBOX}"
        raise RequestRefused(DispatchCode.TEST_KEY_FORBIDDEN, detail, pointer="/to/receiver")


async def check_own(store: SqliteStore, tenant: str, name: str) -> None:
    """Raises RequestRefused if another key sent the notification."""
    if not await store.reader.run(lambda connection: ending.is_test(connection, tenant, name)):
        raise RequestRefused(DispatchCode.TEST_KEY_FORBIDDEN, "a test key sees and ends only what test keys sent")
