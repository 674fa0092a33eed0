"""The publishes of one client: waiting, sent, answered.

Publishes without an answer are kept here in order, within two limits. After a lost connection, those that were sent are
sent again first, with the same number or key, so that the node accepts each once. A publish without either cannot be sent
twice, so it fails. A publish gets its number when it is first sent.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..codes import CODES, Code
from ..errors import CommandRefused, GodwitError, SessionClosed
from ..model import Published
from .codec.command import Command, Draft, Publish
from .errors import AnswerLost, ClientClosed, PublishQueueFull

Settle: TypeAlias = Callable[[Published | GodwitError], None]
UNKNOWN = (Code.REPEAT_UNKNOWN, Code.NUMBER_TOO_OLD)  # the server cannot know whether it took this one before
LEARNED_MS = 60_000  # how long a size that was refused is not sent again
ENVELOPE_BYTES = 64  # by which frames of the same publish differ: its id and number, and whether it is a repeat
ENTRY_BYTES = 200  # memory of one waiting publish besides its content


@dataclass(slots=True, eq=False)
class Pending:
    """One publish until it is answered. `settle` is called exactly once, unless the caller gave up waiting."""

    draft: Draft
    size: int
    order: int
    settle: Settle
    is_given_up: bool = False
    is_sent: bool = False
    is_alone: bool = False  # goes in a frame of its own from now on
    is_finished: bool = False
    is_numbered: bool = False  # it is sent under a number if the server accepts numbers
    number: int | None = None
    sends: int = 0  # under this number, without an answer


@dataclass(frozen=True, slots=True)
class Frame:
    """One sent frame: its size in bytes, and the ids of its publishes."""

    size: int
    ids: tuple[int, ...] = ()
    is_mixed: bool = False  # it held more than one command


class Numbering:
    """The numbers of one client's publishes, by which the node recognizes a repeated one (protocol.md, 4.16)."""

    def __init__(self, publisher: str = "") -> None:
        self.publisher = publisher  # id of this client object; empty: publishes are not numbered
        self.is_known = False  # to the server, on this connection
        self.next = 1
        self._keys = 0
        self._given: deque[int] = deque()
        self._open: set[int] = set()

    def take(self) -> int:
        number = self.next
        self.next += 1
        self._given.append(number)
        self._open.add(number)
        return number

    def settle(self, number: int | None) -> None:
        """This number will not be sent again."""
        if number is not None:
            self._open.discard(number)

    @property
    def floor(self) -> int:
        """All numbers below it are settled."""
        while self._given and self._given[0] not in self._open:
            self._given.popleft()
        return self._given[0] if self._given else self.next

    def key(self) -> str:
        """An idempotency key, used if the node has no room for another numbered publisher, and for at-most-once messages."""
        self._keys += 1
        return f"{self.publisher[:16]}.{self._keys:x}"


class PublishQueue:
    """Publishes in order: first the sent ones, then the waiting ones."""

    def __init__(
        self,
        count_max: int,
        bytes_max: int,
        in_flight_max: int,
        numbering: Numbering | None = None,
        *,
        sends_unknown: bool = True,
    ) -> None:
        self._numbering = numbering or Numbering()
        self._sends_unknown = sends_unknown  # a publish that the server no longer knows; otherwise it fails
        self._count_max, self._bytes_max, self._in_flight_max = count_max, bytes_max, in_flight_max
        self._waiting: deque[Pending] = deque()
        self._in_flight: dict[int, Pending] = {}
        self._alone: set[int] = (
            set()
        )  # of those in flight: in a frame of its own; nothing else is sent until they are answered
        self._bytes = self._order = 0
        self._gone = 0  # of the waiting: given up, and taken out together
        self._held_from: int | None = None  # those given from here on are not sent yet

    def __len__(self) -> int:
        return len(self._waiting) - self._gone + len(self._in_flight)

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def can_send(self) -> bool:
        if len(self._in_flight) >= self._in_flight_max or len(self._waiting) <= self._gone:
            return False
        if self._alone and not self._waiting[0].is_alone:
            return False
        return self._held_from is None or any(not each.is_given_up and self._is_earlier(each) for each in self._waiting)

    def add(self, draft: Draft, settle: Settle, *, is_numbered: bool = False) -> Pending:
        """Queue a publish; raises PublishQueueFull at a limit, without changes."""
        size = ENTRY_BYTES + len(draft.content) + draft.fields_bytes
        if len(self) >= self._count_max:
            raise PublishQueueFull("publish_queue_max", self._count_max)
        if self._bytes + size > self._bytes_max and len(self):
            raise PublishQueueFull("publish_queue_bytes_max", self._bytes_max)
        self._order += 1
        pending = Pending(draft, size, self._order, settle, is_numbered=is_numbered)
        self._waiting.append(pending)
        self._bytes += size
        return pending

    def give_up(self, pending: Pending) -> None:
        """The caller no longer waits. A publish that is not sent yet is removed and never sent."""
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
        """The publishes that may be sent now, each with an id."""
        commands = []
        while self._waiting and len(self._in_flight) < self._in_flight_max and self._is_earlier(self._waiting[0]):
            if self._alone and not self._waiting[0].is_alone:
                break
            pending = self._waiting.popleft()
            if pending.is_given_up:
                self._gone -= 1
                continue
            if pending.is_numbered and not self._can_identify(pending):
                continue
            id = take_id()
            pending.is_sent = True
            self._in_flight[id] = pending
            if pending.is_alone:
                self._alone.add(id)
            number, is_again = pending.number, pending.sends > 0
            floor = 0 if number is None else self._numbering.floor
            commands.append(Publish(id, pending.draft, pending.is_alone, number, floor, is_again))
            pending.sends += 1
        return commands

    def _can_identify(self, pending: Pending) -> bool:
        """Give a publish its number, or a key if the node has no room for numbers. False: it failed."""
        if self._numbering.is_known:
            if pending.number is None:
                pending.number = self._numbering.take()
            return True
        if pending.sends and not self._sends_unknown:
            self._finish(pending, AnswerLost(pending.draft.subject))
            return False
        self._forget_number(pending)
        pending.draft, pending.is_numbered = replace(pending.draft, key=self._numbering.key()), False
        return True

    def _forget_number(self, pending: Pending) -> None:
        self._numbering.settle(pending.number)
        pending.number, pending.sends = None, 0

    def refuse(self, id: int, error: CommandRefused) -> None:
        """The server refused this publish. If it may have accepted it before, the publish is sent under a new number, or fails."""
        pending = self._in_flight.get(id)
        if pending is None or pending.number is None or error.code not in UNKNOWN:
            self.answer(id, error)
        elif self._sends_unknown:
            self._forget_number(pending)
            self.put_back(id)
        else:
            self.answer(id, AnswerLost(pending.draft.subject))

    def answer(self, id: int, outcome: Published | GodwitError) -> bool:
        """Settle the publish with this id; False if the id is unknown."""
        pending = self._in_flight.pop(id, None)
        self._alone.discard(id)
        if pending is None:
            return False
        self._finish(pending, outcome)
        return True

    def refuse_too_big(self, frame: Frame) -> None:
        """The node refused a frame because of its size. A publish alone in it fails; several are sent one by one next."""
        sent = [self._in_flight[id] for id in frame.ids if id in self._in_flight]
        if len(frame.ids) == 1 and not frame.is_mixed and sent:
            self.answer(frame.ids[0], _too_big(sent[0].draft, frame.size))
        for pending in sent:
            pending.is_alone = True

    def refuse_unsent(self, id: int, size: int) -> bool:
        """Refuse a publish whose frame is too large, as the client has learned. False: the node may have accepted it before,
        so it is sent, and the node answers.
        """
        is_first = id in self._in_flight and self._in_flight[id].sends == 1
        if is_first:
            self.refuse_too_big(Frame(size, (id,)))
        return is_first

    def send_alone(self) -> bool:
        """The node could not read a frame, and it is unknown which. Each publish without an answer is sent in a frame of its
        own next. False if each was alone already.
        """
        mixed = [pending for pending in self._in_flight.values() if not pending.is_alone]
        for pending in mixed:
            pending.is_alone = True
        return bool(mixed)

    def put_back(self, id: int) -> None:
        """The node did not accept this publish now: it waits again, at its old place in the order."""
        pending = self._in_flight.pop(id, None)
        self._alone.discard(id)
        if pending is not None:
            pending.sends = max(0, pending.sends - 1)
            if not pending.sends:  # a number that no server has seen may be below those of the next connection
                self._forget_number(pending)
            self._put_back([pending])

    def lost(self) -> None:
        """The connection was lost: sent publishes wait again, before the others."""
        again = list(self._in_flight.values())
        self._in_flight.clear()
        self._alone.clear()
        for pending in again:
            if not _is_identified(pending):
                self._finish(pending, AnswerLost(pending.draft.subject))
        self._put_back([pending for pending in again if _is_identified(pending)])

    def hold_later(self) -> None:
        """Send only the publishes queued until now, until `release_later` is called."""
        self._held_from = self._order + 1

    def release_later(self) -> None:
        self._held_from = None

    @property
    def has_earlier(self) -> bool:
        """Whether a publish queued before `hold_later` has no answer."""
        return any(map(self._is_earlier, self._in_flight.values())) or any(
            not each.is_given_up and self._is_earlier(each) for each in self._waiting
        )

    def fail_earlier(self) -> None:
        """Fail the publishes queued before `hold_later`."""
        for id, pending in list(self._in_flight.items()):
            if self._is_earlier(pending):
                self.answer(id, AnswerLost(pending.draft.subject))
        for pending in [each for each in self._waiting if not each.is_given_up and self._is_earlier(each)]:
            self._finish(pending, AnswerLost(pending.draft.subject))
            pending.is_given_up = True
        self._put_back([])

    def _is_earlier(self, pending: Pending) -> bool:
        return self._held_from is None or pending.order < self._held_from

    def close(self, error: GodwitError) -> None:
        """Fail every publish without an answer, because nothing more will be sent."""
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
        self._numbering.settle(pending.number)
        pending.is_finished = True
        if not pending.is_given_up:
            pending.settle(outcome)


def _is_identified(pending: Pending) -> bool:
    """Whether the node can recognize that it accepted this publish before."""
    return pending.draft.key is not None or pending.number is not None


class SentFrames:
    """The largest frame sent on this connection, in case the node closes because a frame was too large. A publish alone in
    it is refused; several are sent one by one on the next connection. If it held another command, the client ends,
    because the node would refuse it every time. The client reconnects at once, and for a minute refuses a publish whose
    frame would be as large, without sending it: the node's limit may have been raised since.
    """

    def __init__(self) -> None:
        self.was_refused = False  # the last connection ended because a frame was too large
        self._largest = Frame(0)
        self._refused_size = sys.maxsize  # bytes of the smallest frame that the node refused
        self._refused_at = 0

    def clear(self) -> None:
        """A new connection begins."""
        self._largest = Frame(0)

    def sent(self, batch: list[Command], size: int) -> None:
        """These commands were sent as one frame of this many bytes."""
        if size > self._largest.size:
            ids = tuple(command.id for command in batch if isinstance(command, Publish))
            self._largest = Frame(size, ids, len(batch) > 1)

    def is_too_large(self, size: int, now: int) -> bool:
        """Whether the node refused a frame of about this size or a smaller one a short time ago."""
        return size + ENVELOPE_BYTES > self._refused_size and now - self._refused_at < LEARNED_MS

    def lost(self, code: int | None, publishes: PublishQueue, now: int) -> SessionClosed | None:
        """The connection ended with this close code. If the largest frame was refused for its size, returns the error that
        ends the client, or None.
        """
        frame, is_size = self._largest, code == Code.MESSAGE_TOO_BIG
        self.was_refused = is_size and bool(frame.ids)
        if not is_size:
            self._refused_size = sys.maxsize  # the next node may have another limit
        if self.was_refused:
            publishes.refuse_too_big(frame)
            if not self.is_too_large(frame.size, now):
                self._refused_size, self._refused_at = frame.size, now
        if not is_size or frame.ids or not frame.size:
            return None
        code, sentence = Code.MESSAGE_TOO_BIG, CODES[Code.MESSAGE_TOO_BIG].sentence
        return SessionClosed(code, f"a command of {frame.size} bytes is not accepted: {sentence}", reconnect=False)


def _too_big(draft: Draft, size: int) -> CommandRefused:
    code = Code.MESSAGE_TOO_BIG
    return CommandRefused(code, CODES[code].name, f"{draft.subject}, {size} bytes as sent: {CODES[code].sentence}")
