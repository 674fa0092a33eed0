"""The client: start reading here.

It builds the parts, keeps them connected, and offers the public methods. The session (without I/O) knows the protocol;
the connection owns the socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import random
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal

from ..errors import GodwitError, PositionFileHeld
from ..model import Ack, Fields, Kind, Message, Position, Published
from ..subject import check_pattern, check_subject, is_pattern
from ..words import shown
from .arguments import (
    KEY_BYTES_MAX,
    check_choice,
    check_count,
    check_flag,
    check_function,
    check_named_subject,
    check_text,
    check_token,
    fields_of,
    resume_point_of,
    seconds_of,
)
from .backoff import words_of
from .codec.command import Choice, Draft, content_of
from .codec.encodings import ENCODINGS, EncodingName
from .connection import Connection, make_tls, now_ms
from .errors import ClientError, ReplyTimeout, SubscriptionExists
from .item_queue import Budget, ItemQueue
from .position_tracker import PositionTracker
from .positions import SavedPositions
from .positions.lease import RENEW_S
from .requests import Requests
from .resume_point import ResumePoint
from .servers import ServerList, shown_address
from .session import Phase, Session
from .settings import Settings
from .subscribing import Subscribing
from .subscription import Subscription, Watch
from .watching import Watching

log = logging.getLogger("godwit.client")


class Client:
    """A connection to one of several servers that reconnects by itself. Use it as an asynchronous context manager.

    `servers`: an address, a list of addresses, or a list of (address, weight). `token`: text, or a function, asynchronous
    or not, that returns one; it is called at each connect and before a token expires. `encoding`: "json" or "binary".
    `positions`: a mapping, such as a PositionFile, where subscriptions begin and where their resume points are saved.
    `on_save_failed`: a function that is called once when positions cannot be saved, and again after they could.
    `ca_file`: the authority (PEM) of the servers' certificates for wss:// addresses, if this machine does not trust it.
    Raises ValueError or TypeError, with the argument's name, for arguments that cannot be used.
    """

    def __init__(
        self,
        servers: str | Sequence[str | tuple[str, float]],
        *,
        token: str | Callable[[], Awaitable[str] | str] | None = None,
        encoding: EncodingName = "json",
        positions: MutableMapping[str, object] | None = None,
        on_save_failed: Callable[[Exception], object] | None = None,
        settings: Settings | None = None,
        ca_file: str | Path | None = None,
    ) -> None:
        if token is not None and not callable(token):
            check_token(token)
        check_choice("encoding", encoding, tuple(ENCODINGS))
        if positions is not None and not isinstance(positions, MutableMapping):
            raise TypeError(f"positions is {shown(positions)}: expected a mapping, such as a PositionFile")
        if on_save_failed is not None:
            check_function("on_save_failed", on_save_failed)
        if settings is not None and not isinstance(settings, Settings):
            raise TypeError(f"settings is {shown(settings)}: expected Settings")
        self._servers = ServerList(servers)
        self._settings = settings or Settings()
        self._token = token
        self._saved = None if positions is None else SavedPositions(positions, on_save_failed)
        self._session = Session(self._settings, can_renew=callable(token), publisher=secrets.token_hex(16))
        self._connection = Connection(self._session, ENCODINGS[encoding], self._current_token, make_tls(ca_file))
        self._budget = Budget(self._settings.items_total_bytes_max)
        self._requests: Requests | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stirred = asyncio.Event()  # stop waiting for the next try
        self._changed = asyncio.Event()
        self._session.changed = self._changed.set
        self._loss = ""  # why there is no connection

    async def __aenter__(self) -> Client:
        self._connection.begin()
        if self._saved is not None:
            await self._saved.open()
        self._tasks.append(asyncio.create_task(self._run()))
        if self._saved is not None:
            self._tasks.append(asyncio.create_task(self._keep_positions(self._saved)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._saved is not None:
            self._saved.handled()
        await self.close()

    @property
    def is_connected(self) -> bool:
        """Whether a server has accepted this client and the connection is open."""
        return self._session.phase in (Phase.LIVE, Phase.DRAINING)

    async def connected(self) -> None:
        """Wait until a server has accepted the client. No other call needs this; put a timeout around it to fail early.

        Raises Unauthorized or SessionClosed if the servers refuse the client for good.
        """
        self._check_begun()
        while not self.is_connected:
            if self._session.error is not None:
                raise self._session.error.with_traceback(None)
            self._changed.clear()
            await self._changed.wait()

    async def set_token(self, token: str) -> None:
        """Replace the token, or token function, for this connection and later ones. Returns when the server accepts it.

        A token of another identity gets a new connection, on which subscriptions resume. Earlier publishes have
        10 seconds for their answers. After that, or if the connection is lost, they raise AnswerLost and are never sent
        under the new token. Raises SessionClosed if the server refuses the token, which ends the client, and ClientError
        if another call replaces it meanwhile.
        """
        check_token(token)
        self._check_begun()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settle(error: GodwitError | None) -> None:
            if not future.done():
                future.set_result(None) if error is None else future.set_exception(error)

        self._session.hand_over(token, now_ms(), settle)
        self._connection.wake()
        if self._session.phase is Phase.AWAY:
            self._stirred.set()  # another token may be what the next try needs
        await future

    @property
    def loss(self) -> str:
        """Why the last connection ended or failed."""
        return self._loss

    def subscribe(
        self,
        selector: str,
        *,
        after: ResumePoint | Position | Mapping[str, Position] | None = None,
        last: int | None = None,
        snapshot: bool = True,
        on_gap: Literal["snapshot", "oldest"] = "snapshot",
        conflate_ms: int | None = None,
    ) -> Subscription:
        """Subscribe to a subject or a pattern such as `/rooms/**`; returns at once, also while disconnected.

        `after`: continue after a resume point or position; default: the saved one, if there is one. `last`: begin with this
        many kept messages of each subject. `snapshot=False`: begin without the snapshot. `on_gap`: after a gap continue with
        the snapshot, or with the "oldest" kept message. `conflate_ms`: at most one message of a subject in this time.
        Raises SubscriptionExists, SubjectInvalid, ClientClosed. A refusal by the server is raised where it is read.

            async for message in client.subscribe("/rooms/**"):
                print(message.subject, message.json())
        """
        self._check_begun()
        check_pattern(selector)
        if last is not None:
            check_count("last", last, 0)
        check_flag("snapshot", snapshot)
        check_choice("on_gap", on_gap, ("snapshot", "oldest"))
        if conflate_ms is not None:
            check_count("conflate_ms", conflate_ms, 1)
        given = resume_point_of(selector, after)
        if selector in self._session.subscriptions:
            raise SubscriptionExists(selector)
        saved = self._saved.resume_point(selector) if self._saved is not None else None
        subscription = self._subscribe(
            selector, saved if after is None else given, Choice(last, snapshot, on_gap, conflate_ms)
        )
        if self._saved is not None:
            self._saved.keep(subscription)
        return subscription

    async def publish(
        self,
        subject: str,
        content: object,
        *,
        key: str | None = None,
        reply_to: str | None = None,
        retain: bool | None = None,
        merge: bool | None = None,
        fields: Fields | None = None,
        guaranteed: bool = True,
        ack: Ack | None = None,
        once: bool = True,
    ) -> Published:
        """Publish, and wait for the server's acknowledgement. bytes are sent as bytes, str as text, anything else as JSON.

        While disconnected it waits in a queue. After a lost connection it is sent again under the same number, or
        idempotency `key`, so that it becomes one message; where the server cannot know, `settings.on_unknown_publish`
        decides. `once=False` sends it without either, and raises AnswerLost where the connection is lost.
        `retain`: make it the snapshot (default: the pattern's setting). `merge`: a JSON object whose members go into the
        snapshot; null removes one. `fields`: text or bytes by name, beside the content; None removes one.
        `guaranteed=False`: at most once, without a position. `ack`: what has to be done before the acknowledgement.
        Raises CommandRefused with the server's code, PublishQueueFull, AnswerLost, ClientClosed.

            await client.publish("/rooms/kitchen", {"celsius": 21.5})
        """
        self._check_begun()
        check_subject(subject)
        if key is not None:
            check_text("key", key, KEY_BYTES_MAX)
        if reply_to is not None:
            check_named_subject("reply_to", reply_to)
        if retain is not None:
            check_flag("retain", retain)
        if merge is not None:
            check_flag("merge", merge)
        check_flag("guaranteed", guaranteed)
        check_flag("once", once)
        if ack is not None:
            check_choice("ack", ack, tuple(Ack))
        is_numbered = key is None and once and guaranteed
        if key is None and once and not guaranteed:
            key = self._session.numbering.key()
        kind, written = content_of(content)
        draft = Draft(subject, kind, written, key, reply_to, retain, guaranteed, ack, merge, fields_of(fields))
        return await self._send(draft, is_numbered)

    async def remove_snapshot(self, subject: str) -> Published:
        """Remove a subject's snapshot; subscribers receive a message with `is_removal`. It needs the right to publish there.

        Raises CommandRefused (SnapshotMissing) if the subject has none.
        """
        self._check_begun()
        check_subject(subject)
        return await self._send(Draft(subject, Kind.TEXT, b"", is_removal=True), True)

    async def _send(self, draft: Draft, is_numbered: bool) -> Published:
        future: asyncio.Future[Published] = asyncio.get_running_loop().create_future()

        def settle(outcome: Published | GodwitError) -> None:
            if not future.done():
                future.set_result(outcome) if isinstance(outcome, Published) else future.set_exception(outcome)

        pending = self._session.publish(draft, settle, is_numbered=is_numbered)
        self._connection.wake()
        try:
            return await future
        except asyncio.CancelledError:
            self._session.publishes.give_up(pending)
            raise

    async def request(self, subject: str, content: object, *, timeout_ms: float = 10_000) -> Message:
        """Publish a request and return the first reply. Raises ReplyTimeout if none comes within `timeout_ms`.

        answer = await client.request("/time", "now?")
        """
        timeout_s = seconds_of("timeout_ms", timeout_ms)
        self._check_begun()
        check_subject(subject)
        if self._requests is None:
            self._requests = Requests()
            replies = self._subscribe(self._requests.pattern, None, Choice(last=1))
            self._tasks.append(hearing := asyncio.create_task(self._hear_replies(self._requests, replies)))
            hearing.add_done_callback(self._tasks.remove)
        reply_to, reply = self._requests.expect()
        try:
            async with asyncio.timeout(timeout_s):
                await self.publish(subject, content, reply_to=reply_to, retain=False)
                return await reply
        except TimeoutError:
            raise ReplyTimeout(subject, timeout_ms) from None
        finally:
            reply.cancel()

    async def reply(self, request: Message, content: object) -> Published:
        """Publish `content` on the subject where a request expects its reply. Raises ValueError if it expects none."""
        if not isinstance(request, Message):
            raise TypeError(f"request is {shown(request)}: expected a Message that was received")
        if request.reply_to is None:
            raise ValueError(f"{request.subject} asks for no reply: it has no reply_to")
        return await self.publish(request.reply_to, content)

    def watch(self, selector: str) -> Watch:
        """Iterate over the interest in a subject, or in the subjects of a pattern: whether it has subscribers."""
        self._check_begun()
        check_pattern(selector)
        if selector in self._session.watches:
            raise SubscriptionExists(selector)
        watching = Watching(selector)
        watch = Watch(self._session, self._connection, watching)
        self._session.watch(watching)
        self._connection.wake()
        return watch

    async def close(self) -> None:
        """End the client: publishes without an answer raise ClientClosed; subscriptions end after what was received."""
        self._connection.check_loop()
        self._session.close()
        self._connection.wake()
        self._stirred.set()
        for task in self._tasks[1:] if self._connection.is_open else self._tasks:
            task.cancel()
        try:
            ended = await asyncio.gather(*self._tasks, return_exceptions=True)  # close() may be cancelled meanwhile
        finally:
            if self._saved is not None:
                self._saved.close()
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome

    def _subscribe(self, selector: str, resume_point: ResumePoint | None, choice: Choice) -> Subscription:
        is_many, subjects_max = is_pattern(selector), self._settings.subjects_max
        handled, bytes_max = (
            PositionTracker(selector, is_many, subjects_max, resume_point),
            self._settings.items_bytes_max,
        )
        queue = ItemQueue(self._settings.items_max, handled, bytes_max, self._budget)
        tracker = PositionTracker(selector, is_many, subjects_max, resume_point)
        subscribing = Subscribing(selector, choice, tracker, queue)
        subscription = Subscription(self._session, self._connection, subscribing)
        self._session.subscribe(subscribing)
        self._connection.wake()
        return subscription

    async def _hear_replies(self, requests: Requests, replies: Subscription) -> None:
        await requests.listen(replies)
        self._requests = None  # refused or ended: a later request subscribes again

    async def _keep_positions(self, saved: SavedPositions) -> None:
        """Save positions and renew the lease at intervals. If another process took the lease, the client ends."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(saved.save_every(self._settings.positions_save_ms / 1000))
                group.create_task(saved.renew_every(RENEW_S))
        except* PositionFileHeld as group:
            self._session.close(group.exceptions[0] if isinstance(group.exceptions[0], PositionFileHeld) else None)
            self._connection.wake()

    async def _run(self) -> None:
        """Stay connected. An unexpected error in the client is logged, and ends it and all calls that wait."""
        try:
            await self._stay_connected()
        except Exception as error:
            log.exception("internal error in the client")
            self._session.close(ClientError(f"internal error in the client: {error!r}"))

    async def _stay_connected(self) -> None:
        session = self._session
        has_warned = False
        while not session.is_over:
            loss = await self._connection.live(url := self._servers.choose(random.random()))
            if was_welcome := session.is_welcome:
                self._servers.succeeded()
            self._loss = words_of(loss.code, loss.reason)
            session.lost(now_ms(), loss.code, loss.reason, fault=loss.fault)
            if not session.is_over:
                wait_ms, shown = session.backoff.wait_ms(random.random()), shown_address(url)
                if was_welcome:
                    log.info("disconnected from %s (%s); next try in %s ms", shown, self._loss, wait_ms)
                else:  # the first failure is worth a line of every program
                    said = self._loss if shown in self._loss else f"not connected to {shown}: {self._loss}"
                    log.log(logging.INFO if has_warned else logging.WARNING, "%s; retrying", said)
                has_warned = not was_welcome
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stirred.wait(), wait_ms / 1000)
                self._stirred.clear()

    async def _current_token(self) -> str | None:
        if self._session.handover.token is not None:
            return self._session.handover.token
        given = self._token() if callable(self._token) else self._token
        given = await given if inspect.isawaitable(given) else given
        return self._session.handover.token or given  # set_token may have been called meanwhile

    def _check_begun(self) -> None:
        if not self._tasks:
            raise ClientError("the client has not been started; use `async with Client(...) as client:`")
        self._connection.check_loop()
