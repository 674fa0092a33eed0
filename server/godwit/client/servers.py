"""Which server to try next.

Servers have weights. Each round tries every one of them once, drawn by weight among those not yet tried; weight 0 is
a reserve, drawn when no weighted one is left. Randomness is given by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence

LIVE_PATH = "/v1/live"


class ServerList:
    """The addresses a client may use."""

    def __init__(self, servers: str | Sequence[str | tuple[str, float]]) -> None:
        entries = [servers] if isinstance(servers, str) else list(servers)
        pairs = [(entry, 1.0) if isinstance(entry, str) else (entry[0], float(entry[1])) for entry in entries]
        self._servers = [(_with_path(url), weight) for url, weight in pairs]
        if not self._servers:
            raise ValueError("the list of servers is empty; give at least one ws:// address")
        for url, weight in self._servers:
            if not url.startswith(("ws://", "wss://")):
                raise ValueError(f"{url!r} is no server address; one begins with ws:// or wss://")
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


def _with_path(url: str) -> str:
    """An address without a path means the node's own."""
    host = url.partition("://")[2]
    return url if "/" in host else url + LIVE_PATH
