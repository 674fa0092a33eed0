"""The publishes of one client: waiting, on the wire, answered.

Everything not yet answered is held here, in the order it was given, within two limits. After a loss what was on the
wire goes first again under its old key, so that the server takes each once; a publish without a key cannot be sent
twice, so it fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ..codes import CODES, Code
from ..errors import CommandRefused, GodwitError
from ..model import Published
from .codec.command import Draft, Publish
from .errors import AnswerLost, ClientClosed, PublishQueueFull

Settle: TypeAlias = Callable[[Published | GodwitError], None]
ENTRY_BYTES = 200  # what one waiting publish costs beside its content


@dataclass(slots=True, eq=False)
class Pending:
    """One publish until it is answered; `settle` is called exactly once, unless it was given up."""

    draft: Draft
    size: int
    order: int
    settle: Settle
    is_given_up: bool = False
    is_sent: bool = False
    is_finished: bool = False


class PublishQueue:
    """Publishes in order: first those on the wire, then those waiting."""

    def __init__(self, count_max: int, bytes_max: int, in_flight_max: int) -> None:
        self._count_max, self._bytes_max, self._in_flight_max = count_max, bytes_max, in_flight_max
        self._waiting: deque[Pending] = deque()
        self._in_flight: dict[int, Pending] = {}
        self._bytes = self._order = 0
        self._gone = 0  # of the waiting: given up, and taken out together

    def __len__(self) -> int:
        return len(self._waiting) - self._gone + len(self._in_flight)

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def can_send(self) -> bool:
        return len(self._waiting) > self._gone and len(self._in_flight) < self._in_flight_max

    def add(self, draft: Draft, settle: Settle) -> Pending:
        """Queue a draft; raises PublishQueueFull at a limit, having kept nothing."""
        size = ENTRY_BYTES + len(draft.content)
        if len(self) >= self._count_max:
            raise PublishQueueFull("publish_queue_max", self._count_max)
        if self._bytes + size > self._bytes_max and len(self):
            raise PublishQueueFull("publish_queue_bytes_max", self._bytes_max)
        self._order += 1
        pending = Pending(draft, size, self._order, settle)
        self._waiting.append(pending)
        self._bytes += size
        return pending

    def give_up(self, pending: Pending) -> None:
        """Nobody waits for this one any more. One that is not sent yet frees its place at once and is never sent."""
        if pending.is_given_up or pending.is_finished:
            return
        pending.is_given_up = True
        if pending.is_sent:
            return  # its answer, or the loss of the connection, frees its place
        self._finish(pending, ClientClosed())
        self._gone += 1
        if self._gone * 2 > len(self._waiting):
            self._put_back([])

    def send(self, take_id: Callable[[], int]) -> list[Publish]:
        """Those that may go on the wire now, each with an id."""
        commands = []
        while self._waiting and len(self._in_flight) < self._in_flight_max:
            pending = self._waiting.popleft()
            if pending.is_given_up:
                self._gone -= 1
                continue
            id = take_id()
            pending.is_sent = True
            self._in_flight[id] = pending
            commands.append(Publish(id, pending.draft))
        return commands

    def answer(self, id: int, outcome: Published | GodwitError) -> bool:
        """Settle the publish with this id; False when it is none of ours."""
        pending = self._in_flight.pop(id, None)
        if pending is None:
            return False
        self._finish(pending, outcome)
        return True

    def put_back(self, id: int) -> None:
        """The server did not take this one and will not now: it waits again, in its old place."""
        pending = self._in_flight.pop(id, None)
        if pending is not None:
            self._put_back([pending])

    def lost(self, is_too_big: bool = False) -> None:
        """The connection went: what was on the wire waits again, ahead of the rest.

        `is_too_big`: the server closed because a message was too big. The largest must have been it, and is not tried
        again.
        """
        again = list(self._in_flight.values())
        if is_too_big and again:
            largest = max(again, key=lambda pending: pending.size)
            again.remove(largest)
            self._finish(largest, _too_big(largest.draft))
        self._in_flight.clear()
        for pending in again:
            if pending.draft.key is None:
                self._finish(pending, AnswerLost(pending.draft.subject))
        self._put_back([pending for pending in again if pending.draft.key is not None])

    def close(self, error: GodwitError) -> None:
        """Nothing more will be sent: fail whatever has no answer."""
        remaining = [*self._in_flight.values(), *self._waiting]
        self._in_flight.clear()
        self._waiting.clear()
        self._gone = 0
        for pending in remaining:
            if not pending.is_finished:
                self._finish(pending, error)

    def _put_back(self, again: list[Pending]) -> None:
        for pending in again:
            pending.is_sent = False
            if pending.is_given_up:
                self._finish(pending, ClientClosed())
        kept = [pending for pending in [*again, *self._waiting] if not pending.is_given_up]
        self._waiting, self._gone = deque(sorted(kept, key=lambda pending: pending.order)), 0

    def _finish(self, pending: Pending, outcome: Published | GodwitError) -> None:
        self._bytes -= pending.size
        pending.is_finished = True
        if not pending.is_given_up:
            pending.settle(outcome)


def _too_big(draft: Draft) -> CommandRefused:
    code = Code.MESSAGE_TOO_BIG
    return CommandRefused(
        code, CODES[code].name, f"{draft.subject}, {len(draft.content)} bytes: {CODES[code].sentence}"
    )
