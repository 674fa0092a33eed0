"""The publishes of one client: waiting, on the wire, answered.

Everything not yet answered is held here, in the order it was given, within two limits.  After a loss what was on the wire goes
first again under its old key, so that the server takes each once; a publish without a key cannot be sent twice, so it fails.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from godwit.client.commands import Draft, Publish
from godwit.client.errors import AnswerLost, ClientError, PublishQueueFull
from godwit.client.items import Receipt

Settle = Callable[[Receipt | ClientError], None]
ENTRY_BYTES = 200  # what one waiting publish costs beside its content


@dataclass(slots=True, eq=False)
class Pending:
    """One publish until it is answered; `settle` is called exactly once, unless it was given up."""

    draft: Draft
    size: int
    settle: Settle
    is_given_up: bool = False


class PublishQueue:
    """Publishes in order: first those on the wire, then those waiting."""

    def __init__(self, count_max: int, bytes_max: int, in_flight_max: int) -> None:
        self._count_max, self._bytes_max, self._in_flight_max = count_max, bytes_max, in_flight_max
        self._waiting: deque[Pending] = deque()
        self._in_flight: dict[int, Pending] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._in_flight)

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def add(self, draft: Draft, settle: Settle) -> Pending:
        """Queue a draft; raises PublishQueueFull at a limit, having kept nothing."""
        size = ENTRY_BYTES + len(draft.content)
        if len(self) >= self._count_max:
            raise PublishQueueFull("publish_queue_max", self._count_max)
        if self._bytes + size > self._bytes_max and len(self):
            raise PublishQueueFull("publish_queue_bytes_max", self._bytes_max)
        pending = Pending(draft, size, settle)
        self._waiting.append(pending)
        self._bytes += size
        return pending

    def give_up(self, pending: Pending) -> None:
        """Nobody waits for this one any more; it is not sent if it still can be helped."""
        pending.is_given_up = True

    def send(self, take_id: Callable[[], int]) -> list[Publish]:
        """Those that may go on the wire now, each with an id."""
        commands = []
        while self._waiting and len(self._in_flight) < self._in_flight_max:
            pending = self._waiting.popleft()
            if pending.is_given_up:
                self._bytes -= pending.size
                continue
            id = take_id()
            self._in_flight[id] = pending
            commands.append(Publish(id, pending.draft))
        return commands

    def answer(self, id: int, outcome: Receipt | ClientError) -> bool:
        """Settle the publish with this id; False when it is none of ours."""
        pending = self._in_flight.pop(id, None)
        if pending is None:
            return False
        self._finish(pending, outcome)
        return True

    def lost(self) -> None:
        """The connection went: what was on the wire waits again, ahead of the rest."""
        again = list(self._in_flight.values())
        self._in_flight.clear()
        for pending in reversed(again):
            if pending.is_given_up:
                self._bytes -= pending.size
            elif pending.draft.key is None:
                self._finish(pending, AnswerLost(pending.draft.subject))
            else:
                self._waiting.appendleft(pending)

    def close(self, error: ClientError) -> None:
        """Nothing more will be sent: fail whatever has no answer."""
        remaining = [*self._in_flight.values(), *self._waiting]
        self._in_flight.clear()
        self._waiting.clear()
        for pending in remaining:
            self._finish(pending, error)

    def _finish(self, pending: Pending, outcome: Receipt | ClientError) -> None:
        self._bytes -= pending.size
        if not pending.is_given_up:
            pending.settle(outcome)
