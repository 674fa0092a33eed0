"""One client's side of the protocol, without I/O: what the server says and the time go in, commands come out.

    AWAY ──opened──▶ CONNECTING ──connected──▶ LIVE ──notice draining──▶ DRAINING
      ▲                  └────────────lost────────┴───────────┘
      └── lost(code, reason)          closed, or a code that forbids coming back ──▶ OVER

The shell calls `opened`, `receive`, `tick`, `lost`, and after each of these and after each wish of the user sends what
`commands()` gives.  Times are milliseconds of any clock that never runs backwards.
"""

import json
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

from godwit.client.backoff import reconnect_wait_ms
from godwit.client.commands import Command, Connect, Draft, Ping, Unsubscribe
from godwit.client.errors import ClientClosed, ClientError, CommandRefused, ConnectionRefused
from godwit.client.items import Dropped, Gap, Interest, Message, Receipt
from godwit.client.publishing import Pending, PublishQueue, Settle
from godwit.client.pushes import Answer, Mark, Notice, Push, Refusal
from godwit.client.settings import Settings
from godwit.client.subscribing import Subscribing
from godwit.client.watching import Watching

CLIENT_NAME = "godwit-python/1"
CODES_FOR_GOOD = range(4000, 4100)
WISH_MS_MAX = 3_600_000  # a server may ask for an hour, not for a year

Answered: TypeAlias = Callable[[Answer | Refusal], None]


class Phase(Enum):
    AWAY = "away"
    CONNECTING = "connecting"
    LIVE = "live"
    DRAINING = "draining"
    OVER = "over"


class Session:
    """Subscriptions, watches, publishes and the health of the connection that carries them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.phase = Phase.AWAY
        self.error: ClientError | None = None  # why it is OVER
        self.id: str | None = None  # the server's name for the session
        self.wants_token = False  # the server asked for a new one
        self.subscriptions: dict[str, Subscribing] = {}
        self.watches: dict[str, Watching] = {}
        self.publishes = PublishQueue(
            settings.publish_queue_max, settings.publish_queue_bytes_max, settings.publish_in_flight_max
        )
        self._awaiting: dict[int, Answered] = {}
        self._out: list[Command] = []
        self._last_id = 0
        self._now = 0
        self._opened_at = self._received_at = 0
        self._ping_interval_ms = settings.ping_interval_ms
        self._pinged_at: int | None = None
        self._leave_at: int | None = None
        self._tries = 0
        self._wish_ms: int | None = None

    # What the user wants

    def subscribe(self, subscribing: Subscribing) -> None:
        self.subscriptions[subscribing.selector] = subscribing
        self._ask(subscribing)

    def unsubscribe(self, subscribing: Subscribing) -> None:
        if self.subscriptions.get(subscribing.selector) is subscribing:
            del self.subscriptions[subscribing.selector]
            if subscribing.set_aside():
                self._tell(Unsubscribe(self._take_id(), subscribing.selector))
        subscribing.end(None)

    def set_aside(self, subscribing: Subscribing) -> None:
        """Its reader is behind while others wait for answers: read on without it."""
        if subscribing.set_aside():
            self._tell(Unsubscribe(self._take_id(), subscribing.selector))

    def take_up(self, subscribing: Subscribing) -> None:
        """Its reader has caught up."""
        if subscribing.is_aside:
            subscribing.is_aside = False
            self._ask(subscribing)

    def watch(self, watching: Watching) -> None:
        self.watches[watching.selector] = watching
        self._ask_watch(watching)

    def unwatch(self, watching: Watching) -> None:
        if self.watches.get(watching.selector) is watching:
            del self.watches[watching.selector]

    def publish(self, draft: Draft, settle: Settle) -> Pending:
        if self.error is not None:
            raise self.error
        return self.publishes.add(draft, settle)

    def renew(self, token: str) -> None:
        """Give the server a new token on this connection."""
        self.wants_token = False
        if self.phase in (Phase.LIVE, Phase.DRAINING):
            self._command(lambda id: Connect(id, token, CLIENT_NAME), self._connected)

    def close(self, error: ClientError | None = None) -> None:
        """Nothing more: every wait ends, with `error` or as closed."""
        if self.phase is Phase.OVER:
            return
        self.phase, self.error = Phase.OVER, error or ClientClosed()
        self._awaiting.clear()
        self._out.clear()
        self.publishes.close(self.error)
        for subscribing in self.subscriptions.values():
            subscribing.end(error)
        for watching in self.watches.values():
            watching.end(error)

    # What the connection brings

    def opened(self, now: int, token: str | None) -> None:
        """A connection stands; the first command introduces this client."""
        self.phase = Phase.CONNECTING
        self._now = self._opened_at = self._received_at = now
        self._pinged_at = self._leave_at = self._wish_ms = None
        self._command(lambda id: Connect(id, token, CLIENT_NAME), self._connected)

    def receive(self, pushes: list[Push], now: int) -> None:
        """What one frame brought.  Lookup by kind, messages first: this runs once per message."""
        self._now = self._received_at = now
        self._pinged_at = None
        for push in pushes:
            if type(push) is Message:
                subscribing = self.subscriptions.get(push.pattern or push.subject)
                if subscribing is not None:
                    subscribing.message(push)
            else:
                self._told(push)

    def tick(self, now: int) -> str | None:
        """Look at the clock, at least once a second; returns why the connection is to be given up, if it is."""
        self._now = now
        if self.phase is Phase.CONNECTING and now - self._opened_at >= self.settings.connect_timeout_ms:
            return "the server did not answer connect"
        if self.phase is Phase.DRAINING and self._leave_at is not None and now >= self._leave_at:
            if not self.publishes.in_flight:
                return "the server is draining"
        if self.phase in (Phase.LIVE, Phase.DRAINING):
            if self._pinged_at is not None:
                if now - self._pinged_at >= self.settings.answer_timeout_ms:
                    return "the server does not answer"
            elif now - self._received_at >= self._ping_interval_ms:
                self._pinged_at = now
                self._command(Ping, _ignored)
        return None

    def read_again(self, now: int) -> None:
        """Nothing was read for a while, by this client's own wish: silence until now says nothing about the server."""
        self._received_at = now
        self._pinged_at = None

    def lost(self, now: int, code: int | None = None, reason: str = "") -> None:
        """The connection is gone, or could not be made; `code` is the close code, if one was received."""
        if self.phase is Phase.OVER:
            return
        self._now = now
        if code in CODES_FOR_GOOD:
            self.close(ConnectionRefused(code, reason))
            return
        was_stable = self.phase in (Phase.LIVE, Phase.DRAINING) and now - self._opened_at >= self.settings.reconnect_first_ms
        self._tries = 0 if was_stable else self._tries + 1
        wish = _wish(reason)
        if wish is None and self._leave_at is not None:
            wish = max(0, self._leave_at - now)
        self._wish_ms = wish
        self.phase, self._leave_at = Phase.AWAY, None
        self._awaiting.clear()
        self._out.clear()
        self.publishes.lost()
        for subscribing in self.subscriptions.values():
            subscribing.lost(reason)

    def reconnect_wait_ms(self, random: float) -> int:
        """How long to stay away, by a random number in [0, 1)."""
        first, most = self.settings.reconnect_first_ms, self.settings.reconnect_max_ms
        return reconnect_wait_ms(max(self._tries - 1, 0), random, first, most, self._wish_ms)

    # What goes out

    def commands(self) -> list[Command]:
        """What is to be sent now, in order."""
        out, self._out = self._out, []
        if self.phase is Phase.LIVE:
            out.extend(self.publishes.send(self._take_id))
        return out

    @property
    def awaits_answers(self) -> bool:
        """Somebody waits for something that only reading on can bring."""
        return bool(self._awaiting) or len(self.publishes) > 0

    def full(self) -> list[Subscribing]:
        """The subscriptions whose readers are behind."""
        return [each for each in self.subscriptions.values() if each.queue.is_full and not each.is_aside]

    # Inside

    def _told(self, push: Push) -> None:
        match push:
            case Mark(_, pattern) if pattern in self.subscriptions:
                self.subscriptions[pattern].mark(push)
            case Gap() | Dropped():
                subscribing = self.subscriptions.get(push.pattern or push.subject)
                if subscribing is not None:
                    subscribing.gap(push) if isinstance(push, Gap) else subscribing.dropped(push)
            case Answer() | Refusal():
                self._answered(push)
            case Interest():
                for watching in self.watches.values():
                    watching.told(push)
            case Notice():
                self._noticed(push)
            case _:
                pass  # a mark of a subscription that was left meanwhile

    def _answered(self, answer: Answer | Refusal) -> None:
        if answer.id is None:
            return
        handler = self._awaiting.pop(answer.id, None)
        if handler is not None:
            handler(answer)
        elif isinstance(answer, Answer):
            self.publishes.answer(answer.id, Receipt(answer.at, answer.repeat, answer.ack))
        else:
            self.publishes.answer(answer.id, _refused(answer))

    def _noticed(self, notice: Notice) -> None:
        if notice.name == "token_expiring":
            self.wants_token = True
        elif notice.name == "draining" and self.phase is Phase.LIVE:
            self.phase = Phase.DRAINING
            self._leave_at = self._now + min(notice.reconnect_after_ms or 0, WISH_MS_MAX)

    def _connected(self, answer: Answer | Refusal) -> None:
        if isinstance(answer, Refusal):
            if not answer.retry:
                self.close(ConnectionRefused(answer.code, f"{answer.name}: {answer.reason}"))
            return  # else the connection is given up by the time limit, and tried again
        if answer.session is not None:
            self.id = answer.session
        if answer.ping_interval_ms is not None:
            self._ping_interval_ms = max(1, answer.ping_interval_ms)
        if self.phase is Phase.CONNECTING:
            self.phase = Phase.LIVE
            for watching in self.watches.values():
                self._ask_watch(watching)
            for subscribing in self.subscriptions.values():
                if not subscribing.is_aside:
                    self._ask(subscribing)

    def _ask(self, subscribing: Subscribing) -> None:
        if self.phase not in (Phase.LIVE, Phase.DRAINING):
            return

        def answered(answer: Answer | Refusal) -> None:
            if isinstance(answer, Answer):
                subscribing.answer(answer)
            elif subscribing.is_asked_by(answer.id):
                self.subscriptions.pop(subscribing.selector, None)
                subscribing.end(_refused(answer))

        self._command(subscribing.ask, answered)

    def _ask_watch(self, watching: Watching) -> None:
        if self.phase not in (Phase.LIVE, Phase.DRAINING):
            return

        def answered(answer: Answer | Refusal) -> None:
            if isinstance(answer, Refusal):
                self.watches.pop(watching.selector, None)
                watching.end(_refused(answer))

        self._command(watching.ask, answered)

    def _command(self, command: Callable[[int], Command], answered: Answered) -> None:
        id = self._take_id()
        self._awaiting[id] = answered
        self._out.append(command(id))

    def _tell(self, command: Command) -> None:
        """A command whose answer is of no interest."""
        if self.phase in (Phase.LIVE, Phase.DRAINING):
            self._out.append(command)

    def _take_id(self) -> int:
        self._last_id += 1
        return self._last_id


def _refused(refusal: Refusal) -> CommandRefused:
    return CommandRefused(refusal.code, refusal.name, refusal.reason, refusal.retry)


def _wish(reason: str) -> int | None:
    """`reconnect_after_ms` of a close reason that is a JSON object."""
    try:
        read: Any = json.loads(reason)
        wish = read.get("reconnect_after_ms")
    except (ValueError, AttributeError):
        return None
    return min(max(0, wish), WISH_MS_MAX) if isinstance(wish, int) else None


def _ignored(answer: Answer | Refusal) -> None:
    """Any answer will do: something was received."""
