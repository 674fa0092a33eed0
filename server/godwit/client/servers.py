"""Which server to try next.

Servers have weights. Each round tries every one of them once, drawn by weight among those not yet tried; weight 0 is
a reserve, drawn when no weighted one is left. Randomness is given by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

_UNSAFE = re.compile(r"[\s\x00-\x1f\x7f]")
LIVE_PATH = "/v1/live"


class ServerList:
    """The addresses a client may use."""

    def __init__(self, servers: str | Sequence[str | tuple[str, float]]) -> None:
        if not isinstance(servers, str | Sequence):
            raise TypeError(f"servers is {servers!r:.80}: expected an address, or a list of addresses")
        entries = [servers] if isinstance(servers, str) else list(servers)
        for entry in entries:
            is_pair = isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], str)
            if not isinstance(entry, str) and not (is_pair and isinstance(entry[1], int | float)):
                raise TypeError(f"servers has the entry {entry!r:.80}: expected an address, or (address, weight)")
        pairs = [(entry, 1.0) if isinstance(entry, str) else (entry[0], float(entry[1])) for entry in entries]
        self._servers = [(_checked(url), weight) for url, weight in pairs]
        if not self._servers:
            raise ValueError("the list of servers is empty; give at least one ws:// address")
        for url, weight in self._servers:
            if not 0 <= weight < float("inf"):
                raise ValueError(f"weight {weight} of {url} must be a number from 0 up")
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


def _checked(url: str) -> str:
    """The address, with the node's own path where it has none; raises ValueError, which never shows a password."""
    if not url.startswith(("ws://", "wss://")):
        shown = url if "@" not in url else url.rpartition("@")[2]
        raise ValueError(f"{shown!r} is not a valid server address: it must begin with ws:// or wss://")
    parts = urlsplit(url)
    if "@" in parts.netloc:
        host = parts.netloc.rpartition("@")[2]
        raise ValueError(f"the server address of {host} holds a user or a password: pass a token with `token=` instead")
    try:
        is_whole = bool(parts.hostname) and parts.port != 0 and not parts.fragment and not _UNSAFE.search(url)
    except ValueError:
        is_whole = False  # the port is not a number, or out of range
    if not is_whole:
        raise ValueError(f"{url!r} is not a valid server address: expected ws://HOST:PORT or wss://HOST:PORT")
    return url if parts.path not in ("", "/") else urlunsplit(parts._replace(path=LIVE_PATH))
