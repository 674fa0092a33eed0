"""The open connections of a port, with a limit of their number.

At the limit the one that has waited longest for a request is closed, so that silent connections keep nobody out; one whose
request is being answered goes only where all are.
"""

from __future__ import annotations

import resource
from typing import Protocol


class Counted(Protocol):
    """An entry in the table: a connection, or its TLS handshake."""

    def force_close(self) -> None:
        """Close it at once."""


def share_of_descriptors(connections_max: int, share: int) -> int:
    """The limit, and at most this fraction of the process's file descriptors: others need them, too."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections_max if soft == resource.RLIM_INFINITY else min(connections_max, max(4, soft // share))


class Connections:
    """Those that wait, the longest first, and those whose request is being answered."""

    def __init__(self, connections_max: int) -> None:
        self._max = connections_max
        self._waiting: dict[Counted, None] = {}
        self._busy: dict[Counted, None] = {}
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._busy)

    def enter(self, connection: Counted) -> None:
        """Add a connection; beyond the limit another one is closed."""
        if len(self) >= self._max:
            oldest = next(iter(self._waiting or self._busy))
            self.evicted += 1
            self.leave(oldest)
            oldest.force_close()
        self._waiting[connection] = None

    def begin(self, connection: Counted) -> None:
        """A whole request head was received."""
        if self._waiting.pop(connection, self) is None:
            self._busy[connection] = None

    def wait_again(self, connection: Counted) -> None:
        """A request was answered; the connection waits for the next one from now on."""
        if self._busy.pop(connection, self) is None:
            self._waiting[connection] = None

    def leave(self, connection: Counted) -> None:
        self._waiting.pop(connection, None)
        self._busy.pop(connection, None)

    def list_all(self) -> tuple[Counted, ...]:
        """All of them."""
        return (*self._waiting, *self._busy)
