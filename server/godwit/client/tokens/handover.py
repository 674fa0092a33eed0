"""Replaces the token of a client. Publishes made before are answered first, under the old token.

Only the node knows whether the new token has the same identity. If it does, the connection continues. Otherwise the node
closes it (4002), and the client connects again with the new token. A publish made before the call that has no answer by
then fails with AnswerLost, and is never sent under the new token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ...errors import GodwitError
from ..errors import ClientError
from ..publishing import PublishQueue

HANDOVER_MS = 10_000  # for what was published before to be answered

Settled: TypeAlias = Callable[[GodwitError | None], None]


class Handover:
    """At most one replacement at a time: a later one fails an earlier one."""

    def __init__(self, publishes: PublishQueue) -> None:
        self._publishes = publishes
        self._settle: Settled | None = None
        self._until = 0
        self._was_served = False  # there was a connection on which something may have been sent
        self.token: str | None = None  # the last one that was handed over, for this and later connections
        self.is_asked = False  # the node has been given it, and has not answered
        self.is_any_asked = False  # or has been given an earlier one, whose answer may still come

    @property
    def is_under_way(self) -> bool:
        return self._settle is not None

    def begin(self, token: str, now: int, settle: Settled) -> None:
        self.end(ClientError("another token was set before the server accepted this one"))
        self.token, self._until, self._settle = token, now + HANDOVER_MS, settle
        self._publishes.hold_later()

    def is_due(self, now: int) -> bool:
        """Whether all earlier publishes are answered or have timed out."""
        if not self.is_under_way or self.is_asked:
            return False
        return not self._publishes.has_earlier or now >= self._until

    def opened(self, token: str | None) -> None:
        """A connection begins with this token."""
        self.is_asked = self.is_any_asked = self.is_under_way and token == self.token

    def asked(self) -> str | None:
        """The new token was sent on an open connection. Earlier publishes that have timed out fail."""
        self._publishes.fail_earlier()
        self.is_asked = self.is_any_asked = True
        return self.token

    def taken(self, token: str | None) -> None:
        """The node accepted a token, which may be an earlier one."""
        self._was_served = True
        if self.is_asked and token == self.token:
            self.is_any_asked = False
            self.end(None)

    def lost(self) -> None:
        """The connection was lost, and the next one uses the new token: unanswered earlier publishes fail."""
        if self.is_under_way and self._was_served:
            self._publishes.fail_earlier()
        self.is_asked = False

    def end(self, error: GodwitError | None) -> None:
        """The server accepted the token, or refused it."""
        settle, self._settle, self.is_asked = self._settle, None, False
        self._publishes.release_later()
        if settle is not None:
            settle(error)
