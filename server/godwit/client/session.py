"""One client's side of the protocol, without I/O: it receives frames and the time, and returns commands.

    AWAY ──opened──▶ CONNECTING ──connected──▶ LIVE ──notice draining──▶ DRAINING
      ▲                  └────────────lost────────┴───────────┘
      └── lost(code, reason)          closed, or a code that forbids coming back ──▶ OVER

The connection calls `opened`, `receive`, `tick` and `lost`. After each of these, and after each call of the program, it
sends what `commands()` returns. Times are milliseconds of any monotonic clock.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from ..codes import Code
from ..errors import CommandRefused, GodwitError, SessionClosed
from ..model import Gap, Interest, Message, Published
from .backoff import WISH_MS_MAX, Backoff, Faults, wish_of, words_of
from .codec.command import Command, Connect, Draft, Ping, Unsubscribe, Unwatch
from .codec.push import Ended, Epochs, InterestState, Marked, Notice, Received
from .codec.reply import Refusal, Reply
from .errors import ClientClosed
from .items import Dropped
from .liveness import Health, Liveness
from .publishing import Numbering, Pending, PublishQueue, SentFrames, Settle
from .settings import Settings
from .subscribing import State, Subscribing
from .subscriptions import Subscriptions
from .tokens.handover import Handover, Settled
from .watching import Watching

CLIENT_NAME = "godwit-python/1"
RESUME_LOOK_MS = 100  # how often to look whether a paused subscription may resume
CLOSED_FOR_GOOD = (4000, 4099)

Answered: TypeAlias = Callable[[Reply | Refusal], None]


class Phase(Enum):
    AWAY = "away"
    CONNECTING = "connecting"
    LIVE = "live"
    DRAINING = "draining"
    OVER = "over"


class Session:
    """Subscriptions, watches, publishes and the health of the connection that carries them."""

    def __init__(self, settings: Settings, can_renew: bool = False, publisher: str = "") -> None:
        self.settings = settings
        self._can_renew = can_renew  # there is a source of fresh tokens
        self.phase = Phase.AWAY
        self.error: GodwitError | None = None  # why it is OVER
        self.id: str | None = None  # the server's name for the session
        self.node: str | None = None  # and for itself
        self.wants_token = False  # the server asked for a new one
        self.misread: str | None = None  # why the server could not read a frame of this connection
        self.changed: Callable[[], None] = _nobody_asks  # called when the phase becomes LIVE or OVER
        self.frames = SentFrames()
        self.subscriptions = Subscriptions()
        self.watches: dict[str, Watching] = {}
        self.numbering = Numbering(publisher)
        self.publishes = PublishQueue(
            settings.publish_queue_max,
            settings.publish_queue_bytes_max,
            settings.publish_in_flight_max,
            self.numbering,
            sends_unknown=settings.on_unknown_publish == "resend",
        )
        self.handover = Handover(self.publishes)
        self.liveness = Liveness(settings.ping_interval_ms, settings.answer_timeout_ms)
        self.backoff = Backoff(settings.reconnect_first_ms, settings.reconnect_max_ms)
        self._awaiting: dict[int, Answered] = {}
        self._out: list[Command] = []
        self._last_id = 0
        self._now = 0
        self._opened_at = 0
        self._faults = Faults()
        self._leave_at: int | None = None  # when a draining server wants this client gone

    # Commands of the user

    def subscribe(self, subscribing: Subscribing) -> None:
        self._check_open()
        self.subscriptions.add(subscribing)
        self._ask(subscribing)

    def unsubscribe(self, subscribing: Subscribing) -> None:
        if self.subscriptions.remove(subscribing) and subscribing.pause_now():
            self._tell(Unsubscribe(self._take_id(), subscribing.selector))
        subscribing.end(None)

    def pause(self, subscribing: Subscribing, now: int) -> None:
        """Pause a subscription whose reader is slow, so that the client can read for the others."""
        if subscribing.pause(now):
            self._tell(Unsubscribe(self._take_id(), subscribing.selector))
        self.subscriptions.paused.add(subscribing)

    def take_up(self, subscribing: Subscribing, now: int) -> None:
        """The reader of a paused subscription has room: resume it now, or at the next tick if it was paused just before."""
        if subscribing.is_paused and now >= subscribing.resumes_at:
            subscribing.is_paused = False
            if self.could_go_on:  # else its reader has kept up with all that the client does
                subscribing.resumed_at = now
            self._ask(subscribing)

    def watch(self, watching: Watching) -> None:
        self._check_open()
        self.watches[watching.selector] = watching
        self._ask_watch(watching)

    def unwatch(self, watching: Watching) -> None:
        if self.watches.get(watching.selector) is watching:
            del self.watches[watching.selector]
            self._tell(Unwatch(self._take_id(), watching.selector))
        watching.end(None)

    def publish(self, draft: Draft, settle: Settle, *, is_numbered: bool = False) -> Pending:
        self._check_open()
        return self.publishes.add(draft, settle, is_numbered=is_numbered)

    def renew(self, token: str) -> None:
        """Send a new token to the server on this connection."""
        self.wants_token = False
        if self.phase in (Phase.LIVE, Phase.DRAINING):
            self._introduce(token)

    def hand_over(self, token: str, now: int, settle: Settled) -> None:
        """Use another token for this connection and later ones; `settle` is called when the server has accepted or refused it."""
        self._check_open()
        self._can_renew = False
        self.handover.begin(token, now, settle)
        if self.phase is Phase.AWAY:
            self.handover.lost()  # waiting publishes may have been sent under the old token
        else:
            self._now = now
            self._move_handover()

    def close(self, error: GodwitError | None = None) -> None:
        """End everything: each waiting call fails with `error`, or ClientClosed."""
        if self.phase is Phase.OVER:
            return
        self.phase, self.error = Phase.OVER, error or ClientClosed()
        self._awaiting.clear()
        self._out.clear()
        self.publishes.close(self.error)
        self.handover.end(self.error)
        self.subscriptions.end(error)
        for watching in self.watches.values():
            watching.end(error)
        self.changed()

    # Events of the connection

    def opened(self, now: int, token: str | None) -> None:
        """A connection is open; the first command introduces this client."""
        self.phase = Phase.CONNECTING
        self._now = self._opened_at = now
        self._leave_at = None
        self.frames.clear()
        self.liveness.hold(now, False)
        self.handover.opened(token)
        self._introduce(token)

    def receive(self, pushes: list[Received], now: int) -> None:
        """Process one frame. Lookup by kind, messages first, because this runs once for each message."""
        self._now = now
        self.liveness.received(now)
        for push in pushes:
            if type(push) is Message:
                self.subscriptions.message(push)
            else:
                self._pushed(push)

    def tick(self, now: int) -> str | None:
        """Check timeouts; call it at least once a second. Returns why the connection must be closed, or None."""
        self._now = now
        if self.phase is Phase.CONNECTING and now - self._opened_at >= self.settings.connect_timeout_ms:
            return "the server did not answer connect"
        is_due = self._leave_at is not None and now >= self._leave_at
        if self.phase is Phase.DRAINING and is_due and not self.publishes.in_flight:
            return "the server is draining"
        if self.is_welcome:
            self._move_handover()
            for subscribing in self.subscriptions.to_ask_again(now):
                self._ask(subscribing)
            for subscribing in self.subscriptions.to_resume(now):
                self.take_up(subscribing, now)
            health = self.liveness.judge(now)
            if health is Health.DEAD:
                return "the server does not answer"
            if health is Health.PING_DUE:
                self.liveness.pinged(now)
                self._command(Ping, _ignored)
        return None

    def lost(self, now: int, code: int | None = None, reason: str = "", *, fault: str | None = None) -> None:
        """The connection is lost, or could not be opened; `code` is the close code, if one was received."""
        if self.phase is Phase.OVER:
            return
        self._now = now
        if (end := self.frames.lost(code, self.publishes, now)) is not None:
            self.close(end)
            return
        is_fresh = code == Code.TOKEN_EXPIRED and self._can_renew and self.is_welcome  # it slept past its token's end
        is_other = code == Code.TOKEN_INVALID and self.handover.is_any_asked and self.is_welcome  # of another identity
        if code is not None and CLOSED_FOR_GOOD[0] <= code <= CLOSED_FOR_GOOD[1] and not (is_fresh or is_other):
            self.close(SessionClosed(code, words_of(code, reason), reconnect=False))
            return
        served_ms = now - self._opened_at if self.is_welcome else None
        if (broken := self._faults.lost(fault, served_ms)) is not None:
            self.close(broken)
            return
        is_first = self._faults.is_first_misread(self.misread is not None, self.is_welcome)
        wish = 0 if is_first or is_other or self.frames.was_refused else wish_of(reason)
        if wish is None and self._leave_at is not None:
            wish = max(0, self._leave_at - now)
        self.backoff.lost(sys.maxsize if self.frames.was_refused else served_ms, wish)
        self.phase, self._leave_at, self.misread = Phase.AWAY, None, None
        self._awaiting.clear()
        self._out.clear()
        self.handover.lost()
        self.publishes.lost()
        self.subscriptions.lost(words_of(code, reason))

    # Commands to send

    def commands(self) -> list[Command]:
        """The commands to send now, in order."""
        out, self._out = self._out, []
        if self.phase is Phase.LIVE:
            out.extend(self.publishes.send(self._take_id))
        return out

    @property
    def has_commands(self) -> bool:
        return bool(self._out) or (self.phase is Phase.LIVE and self.publishes.can_send)

    @property
    def is_over(self) -> bool:
        return self.phase is Phase.OVER

    @property
    def is_welcome(self) -> bool:
        """Whether the server has answered on this connection."""
        return self.phase in (Phase.LIVE, Phase.DRAINING)

    @property
    def tick_ms(self) -> int:
        """How often to call `tick`, in milliseconds: often enough for the shortest timeout."""
        shortest = min(self.liveness.shortest_ms, self.settings.connect_timeout_ms)
        if self.subscriptions.paused:
            shortest = min(shortest, 4 * RESUME_LOOK_MS)
        return max(1, min(1_000, shortest // 4))

    @property
    def could_go_on(self) -> bool:
        """Whether a watch, a subscription with room, or a waiting call needs data that only further reading can bring."""
        return bool(self.watches or self._awaiting) or len(self.publishes) > 0 or self.subscriptions.has_one_with_room

    # Inside

    def _pushed(self, push: Received) -> None:
        match push:
            case Marked() | Epochs() | Gap() | Dropped() | Ended():
                self.subscriptions.reported(push, self.node, self._now)
            case Reply() | Refusal():
                self._answered(push)
            case Interest():
                for watching in self.watches.values():
                    watching.reported(push)
            case InterestState():
                if (watched := self.watches.get(push.selector)) is not None:
                    watched.state_reported(is_complete=push.is_complete)
            case Notice():
                self._noticed(push)
            case Message():
                raise AssertionError("messages are looked up before")

    def _answered(self, answer: Reply | Refusal) -> None:
        if answer.id is None:
            if isinstance(answer, Refusal):
                self.misread = f"the server cannot read a frame of this client ({answer.name}: {answer.reason})"
            return
        handler = self._awaiting.pop(answer.id, None)
        if handler is not None:
            handler(answer)
        elif isinstance(answer, Refusal) and answer.code == Code.NODE_DRAINING:
            self.publishes.put_back(answer.id)
            self._drain(None)
        elif isinstance(answer, Reply):
            self.publishes.answer(answer.id, Published(answer.position, answer.is_duplicate, answer.ack))
        else:
            self.publishes.refuse(answer.id, _refused(answer))
        self._move_handover()

    def _move_handover(self) -> None:
        if self.phase is Phase.LIVE and self.handover.is_due(self._now):
            self._introduce(self.handover.asked())

    def _noticed(self, notice: Notice) -> None:
        if notice.name == "token_expiring":
            self.wants_token = True
        elif notice.name == "draining":
            self._drain(notice.reconnect_after_ms)

    def _drain(self, reconnect_after_ms: int | None) -> None:
        """The server is draining: hold commands that are not sent yet, and close at the announced time unless the server
        closes before.
        """
        if self.phase is Phase.LIVE:
            self.phase = Phase.DRAINING
        if reconnect_after_ms is not None and self.phase is Phase.DRAINING:
            self._leave_at = self._now + min(reconnect_after_ms, WISH_MS_MAX)

    def _introduce(self, token: str | None) -> None:
        bytes_max, publisher = self.settings.frame_bytes_max, self.numbering.publisher or None
        number = self.numbering.next if publisher else None
        self._command(
            lambda id: Connect(id, token, CLIENT_NAME, bytes_max, publisher, number),
            lambda answer: self._connected(answer, token),
        )

    def _connected(self, answer: Reply | Refusal, token: str | None) -> None:
        if isinstance(answer, Refusal):
            if not answer.retry:
                self.close(SessionClosed(answer.code, f"{answer.name}: {answer.reason}", reconnect=False))
            return  # else the connection is given up by the time limit, and tried again
        self.handover.taken(token)
        if answer.session is not None:
            self.id, self.node = answer.session, answer.node
        if answer.ping_interval_ms is not None:
            self.liveness.ping_interval_ms = max(1, answer.ping_interval_ms)
        self.numbering.is_known = bool(self.numbering.publisher) and answer.has_publisher
        if self.phase is Phase.CONNECTING:
            self.phase = Phase.LIVE
            self.changed()
            for watching in self.watches.values():
                self._ask_watch(watching)
            for subscribing in self.subscriptions.to_ask():
                self._ask(subscribing)

    def _ask(self, subscribing: Subscribing) -> None:
        if subscribing.state is State.ENDED or not self.is_welcome:
            return

        def answered(answer: Reply | Refusal) -> None:
            if isinstance(answer, Reply):
                subscribing.reply(answer)
            elif subscribing.is_asked_by(answer.id):
                self.subscriptions.refuse(subscribing, answer, self._now)

        self._command(lambda id: subscribing.ask(id, self.node), answered)

    def _ask_watch(self, watching: Watching) -> None:
        if watching.is_ended or not self.is_welcome:
            return

        def answered(answer: Reply | Refusal) -> None:
            if watching.is_ended:
                return  # the selector may belong to a later watch by now
            if isinstance(answer, Refusal):
                self.watches.pop(watching.selector, None)
                watching.end(_refused(answer))

        self._command(watching.ask, answered)

    def _command(self, command: Callable[[int], Command], answered: Answered) -> None:
        id = self._take_id()
        self._awaiting[id] = answered
        self._out.append(command(id))

    def _tell(self, command: Command) -> None:
        """Send a command whose answer is ignored."""
        if self.phase in (Phase.LIVE, Phase.DRAINING):
            self._out.append(command)

    def _check_open(self) -> None:
        if self.error is not None:
            raise self.error.with_traceback(None)  # its traceback would grow with each raise, and keep objects alive

    def _take_id(self) -> int:
        self._last_id += 1
        return self._last_id


def _refused(refusal: Refusal) -> CommandRefused:
    return CommandRefused(refusal.code, refusal.name, refusal.reason, retry=refusal.retry)


def _nobody_asks() -> None:
    """Default callback: the phase is ignored."""


def _ignored(answer: Reply | Refusal) -> None:
    """Default callback: the answer is ignored."""
