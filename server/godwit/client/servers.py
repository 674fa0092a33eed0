"""Which server to try next.

Servers have weights. Each round tries every server once, chosen at random by weight among those not tried yet. Servers of
weight 0 are tried last. The caller passes the random number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from ..words import shown

_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f]")
_QUERY, _SCHEME = re.compile(r"[?#]"), re.compile(r"wss?://")
LIVE_PATH = "/v1/live"
WEIGHT_MAX = 1e9


class ServerList:
    """The addresses of the servers of a client."""

    def __init__(self, servers: str | Sequence[str | tuple[str, float]]) -> None:
        if not isinstance(servers, str | Sequence):
            raise TypeError(f"servers is {shown(servers)}: expected an address, or a list of addresses")
        entries = [servers] if isinstance(servers, str) else list(servers)
        for entry in entries:
            is_pair = isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], str)
            if not isinstance(entry, str) and not (is_pair and _is_number(entry[1])):
                raise TypeError(f"servers has the entry {shown(entry)}: expected an address, or (address, weight)")
        pairs = [(entry, 1.0) if isinstance(entry, str) else (entry[0], entry[1]) for entry in entries]
        self._servers = [(_checked(url), weight) for url, weight in pairs]
        if not self._servers:
            raise ValueError("the list of servers is empty; give at least one ws:// address")
        for url, weight in self._servers:
            if not 0 <= weight <= WEIGHT_MAX:
                raise ValueError(
                    f"weight {shown(weight)} of the server {shown_address(url)} must be a number from 0 to {WEIGHT_MAX:g}"
                )
        self._untried: list[tuple[str, float]] = []

    def choose(self, random: float) -> str:
        """The next server, by a random number in [0, 1)."""
        if not self._untried:
            self._untried = list(self._servers)
        total = sum(weight for _, weight in self._untried)
        place = random * (total or len(self._untried))
        for index, (_, weight) in enumerate(self._untried):
            place -= weight if total else 1.0
            if place < 0:
                return self._untried.pop(index)[0]
        return self._untried.pop()[0]  # rounding left `place` at the very end

    def succeeded(self) -> None:
        """A connection was established: the next loss starts a new round."""
        self._untried = []


def shown_address(url: str) -> str:
    """An address for display and logs, without user, password and query, which may be secret."""
    found, at = _QUERY.search(url), url.rfind("@")
    if found is None:
        return url[at + 1 :]
    if at > found.start():  # may contain a password or a secret query
        scheme = _SCHEME.match(url)
        return f"{scheme[0] if scheme else ''}..."
    return f"{url[at + 1 : found.end()]}..."


def _checked(url: str) -> str:
    """The address, with the node's default path if it has none. Raises ValueError, which does not show a password."""
    if not url.startswith(("ws://", "wss://")):
        raise ValueError(f"{shown_address(url)!r} is not a valid server address: it must begin with ws:// or wss://")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _no_address(url) from None  # brackets that do not match
    if "@" in parts.netloc:
        host = parts.netloc.rpartition("@")[2]
        raise ValueError(f"the server address of {host} holds a user or a password: pass a token with `token=` instead")
    try:
        is_host = bool((parts.hostname or "").encode("idna"))
        is_whole = is_host and parts.port != 0 and not parts.fragment and not _UNSAFE.search(url)
    except ValueError:
        is_whole = False  # the port is not a number, or out of range; the host is not a valid name: a part of it is empty or too long
    if not is_whole:
        raise _no_address(url)
    return url if parts.path not in ("", "/") else urlunsplit(parts._replace(path=LIVE_PATH))


def _no_address(url: str) -> ValueError:
    return ValueError(
        f"{shown_address(url)!r} is not a valid server address: expected ws://HOST:PORT or wss://HOST:PORT"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
