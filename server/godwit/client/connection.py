"""One WebSocket from open to close: passes frames to the session, sends its commands, and calls its clock.

Three tasks share it: one reads, one writes, one checks the time. When one ends, the connection ends. While the queue of a
subscription is full, nothing is read. If that lasts 100 ms and another subscription, watch, request or publish waits for
data, the full subscription is paused: the client unsubscribes it, and later subscribes again from its position.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import ssl
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.frames import Close, CloseCode
from websockets.http11 import Response
from websockets.typing import Subprotocol

from ..words import shown
from .codec.command import Command, Publish, Subscribe
from .codec.encodings import Encoding
from .errors import ClientError, FrameInvalid, Unauthorized
from .servers import shown_address
from .session import Phase, Session
from .subscribing import Subscribing
from .tokens.source import Tokens, TokenSource

BATCH_COMMANDS_MAX = 64
BATCH_BYTES_MAX = 65_536  # escaped as badly as can be, still below the server's limit for one message
CLOSE_TIMEOUT_S = 2.0
FRAME_FAULTS = (CloseCode.MESSAGE_TOO_BIG, CloseCode.PROTOCOL_ERROR, CloseCode.INVALID_DATA)  # found by this side
POSITION_BYTES = 30  # a position with its quotes
UNREAD_MS = 100  # a queue that stays full this long is paused at the node if another subscription could continue
WARN_AGAIN_MS = 60_000

log = logging.getLogger("godwit.client")


@dataclass(frozen=True, slots=True)
class Loss:
    """How a connection ended: with a close code, if one was received."""

    code: int | None
    reason: str
    fault: str | None = None  # the error in the frame that broke it, a sentence


def now_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def make_tls(ca_file: str | Path | None) -> ssl.SSLContext | None:
    """A TLS context that trusts only the authorities in the file; with None those of this machine. Raises OSError if the
    file cannot be read, ssl.SSLError if it contains no certificate.
    """
    if ca_file is None:
        return None
    if not isinstance(ca_file, str | os.PathLike):
        raise TypeError(f"ca_file is {shown(ca_file)}: expected str or Path")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks host names, asks for a certificate
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cafile=ca_file)
    except OSError as error:
        error.filename = os.fspath(ca_file)  # Python leaves it out
        raise
    return context


def refusal_of(response: Response) -> str:
    """Why a server refused the WebSocket: the sentence in its answer, if there is one."""
    try:
        problem: Any = json.loads(response.body or b"")
        words = [problem[name] for name in ("title", "detail") if isinstance(problem.get(name), str)]
    except (ValueError, AttributeError, RecursionError):
        words = []
    return ": ".join([f"HTTP {response.status_code}", *words])


class _Connect(connect):
    """Follows no redirect: the token may only be sent to the configured servers."""

    def process_redirect(self, exc: Exception) -> Exception:
        return exc


class Connection:
    """Carries a session over one socket at a time. User calls report with `wake` and `took`."""

    def __init__(
        self, session: Session, encoding: Callable[[], Encoding], token: TokenSource, tls: ssl.SSLContext | None
    ) -> None:
        self._session, self._new_encoding, self._tokens = session, encoding, Tokens(token, now_ms)
        self._encoding, self._tls = encoding(), tls
        self._out = asyncio.Event()  # there may be commands to send
        self._moved = asyncio.Event()  # the reader's event may have happened
        self._warn_at = 0  # no warning of unread subscriptions before
        self._renewing: asyncio.Task[None] | None = None
        self.is_open = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """Bind the client to the running event loop. Raises ClientError if it was started before."""
        if self._loop is not None:
            raise ClientError("the client was already used: create a new one for each `async with`")
        self._loop = asyncio.get_running_loop()

    def check_loop(self) -> None:
        """Raises ClientError in another thread or event loop: calls from there would not wake this one."""
        try:
            loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if self._loop is not None and loop is not self._loop:
            raise ClientError(
                "the client was started in another event loop and can only be used there; from another thread: "
                "asyncio.run_coroutine_threadsafe(client.publish(…), loop)"
            )

    def wake(self) -> None:
        """The session may have commands to send."""
        self._out.set()
        self._moved.set()

    def took(self) -> None:
        """A reader took an item from its queue."""
        self._moved.set()

    async def live(self, url: str) -> Loss:
        """Open one connection, use it, and close it. Always returns how it ended."""
        settings = self._session.settings
        self._encoding = self._new_encoding()
        try:
            token = await self._tokens.fetch()
        except Unauthorized as error:
            self._session.close(error)
            return Loss(None, f"no token: {error}")
        except Exception as error:  # the user's own code
            log.exception("could not obtain a token")
            return Loss(None, f"no token: {error}")
        try:
            socket = await _Connect(
                url,
                subprotocols=[Subprotocol(self._encoding.subprotocol)],
                open_timeout=settings.connect_timeout_ms / 1000,
                ping_interval=None,  # the session pings, so that it can be tested without a clock
                close_timeout=CLOSE_TIMEOUT_S,
                max_size=settings.frame_bytes_max,
                compression=None,
                proxy=None,
                ssl=(self._tls or ssl.create_default_context()) if url.startswith("wss:") else None,
            )
        except InvalidStatus as error:
            loss = Loss(None, f"cannot connect to {shown_address(url)}: {refusal_of(error.response)}")
            if error.response.status_code == HTTPStatus.MISDIRECTED_REQUEST:
                self._session.close(ClientError(loss.reason))
            return loss
        except (OSError, TimeoutError, InvalidHandshake, InvalidURI, EOFError) as error:
            reason = os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else error
            return Loss(None, f"cannot connect to {shown_address(url)}: {reason}")
        self.is_open = True
        try:
            self._session.opened(now_ms(), token)
            return await self._carry(socket)
        finally:
            await _close(socket)
            self.is_open = False

    async def _carry(self, socket: ClientConnection) -> Loss:
        tasks = [asyncio.create_task(work(socket)) for work in (self._watch_clock, self._read, self._write)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return next(task for task in tasks if task in done).result()  # first the clock, which knows why it gave up
        except ConnectionClosed as closed:
            received, sent = closed.rcvd, closed.sent
            if sent is not None and sent.code in FRAME_FAULTS and not closed.rcvd_then_sent:
                return Loss(None, sent.reason, self._fault_of(sent))
            return Loss(received.code, received.reason) if received else Loss(None, "the connection broke")
        except FrameInvalid as error:
            await _close(socket, 1002, str(error)[:120].encode()[:120].decode(errors="ignore"))
            return Loss(None, str(error), f"the server sent a frame that this client cannot read ({error})")
        finally:
            renewing, self._renewing = self._renewing, None
            ending: list[asyncio.Task[Any]] = [*tasks, *([renewing] if renewing else [])]
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    def _fault_of(self, sent: Close) -> str:
        """Why this side closed the connection, as a sentence."""
        if sent.code == CloseCode.MESSAGE_TOO_BIG:
            return (
                f"the server sent a frame of more than {self._session.settings.frame_bytes_max} bytes (frame_bytes_max)"
            )
        return f"the server sent a frame that this client cannot read ({sent.reason})"

    async def _read(self, socket: ClientConnection) -> Loss:
        session = self._session
        while not session.is_over:
            session.receive(self._encoding.decode(await socket.recv()), now_ms())
            if (reason := session.misread) is not None:  # each publish that was in it gets its own answer next
                return Loss(None, reason, None if session.publishes.send_alone() else reason)
            if session.has_commands:
                self._out.set()
            if session.subscriptions.behind():
                await self._wait_for_readers()
        return Loss(None, "closed")

    async def _wait_for_readers(self) -> None:
        session = self._session
        held_at = now_ms()
        session.liveness.hold(held_at, True)
        while behind := session.subscriptions.behind():
            left_ms = held_at + UNREAD_MS - now_ms()
            can_pause = session.could_go_on and any(each.can_pause for each in behind)
            if can_pause and left_ms <= 0:
                self._pause({each for each in behind if each.can_pause})
                continue
            self._moved.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(left_ms, 1) / 1000 if can_pause else None):
                    await self._moved.wait()
        session.liveness.hold(now_ms(), False)

    def _pause(self, behind: set[Subscribing]) -> None:
        """Pause a subscription. Logs a warning at most once a minute, because a slow reader causes many pauses."""
        for subscribing in behind:
            self._session.pause(subscribing, now_ms())
        self._out.set()
        if self._warn_at <= now_ms():
            self._warn_at = now_ms() + WARN_AGAIN_MS
            names = ", ".join(sorted(each.selector for each in behind)[:5])
            log.warning("paused subscriptions whose items are not read while others wait: %s", names)

    async def _write(self, socket: ClientConnection) -> Loss:
        session = self._session
        while not session.is_over:
            self._out.clear()
            batches = deque(_batches(session.commands()))
            while batches:
                batch = batches.popleft()
                frame = self._encoding.encode(batch)
                size = len(frame) if isinstance(frame, bytes) else len(frame.encode())
                is_too_large = session.frames.is_too_large(size, now_ms())
                if is_too_large and len(batch) > 1:
                    batches.extendleft([command] for command in reversed(batch))
                elif (
                    is_too_large
                    and isinstance(batch[0], Publish)
                    and session.publishes.refuse_unsent(batch[0].id, size)
                ):
                    self._out.set()  # others may have waited for its answer
                else:
                    session.frames.sent(batch, size)
                    await socket.send(frame)
            await self._out.wait()
        return Loss(None, "closed")

    async def _watch_clock(self, socket: ClientConnection) -> Loss:
        session = self._session
        while not session.is_over:
            await asyncio.sleep(session.tick_ms / 1000)
            if (reason := session.tick(now_ms())) is not None:
                if session.phase is not Phase.DRAINING:
                    _abort(socket)  # the peer does not answer a close
                return Loss(None, reason)
            is_asked = self._renewing is not None and not self._renewing.done()
            if session.wants_token and not is_asked and self._tokens.may_be_asked:
                self._renewing = asyncio.create_task(self._renew())  # the clock is looked at meanwhile
            if session.has_commands:
                self._out.set()
        return Loss(None, "closed")

    async def _renew(self) -> None:
        try:
            token = await self._tokens.ask()
        except Unauthorized as error:
            self._session.close(error)
            self.wake()
            return
        except Exception:  # the user's own code
            log.exception("could not renew the token, retrying")
            return
        if token is not None:
            self._session.renew(token)
            self.wake()


async def _close(socket: ClientConnection, code: int = 1000, reason: str = "") -> None:
    """Close the socket in any state; closing can fail if the connection broke within a large frame. The server's close frame
    comes after the data sent before it, which is read and dropped.
    """
    reading = asyncio.create_task(_read_on(socket))
    try:
        await socket.close(code, reason)
    except Exception:
        log.debug("the connection did not close cleanly", exc_info=True)
        _abort(socket)
    finally:
        reading.cancel()


async def _read_on(socket: ClientConnection) -> None:
    with contextlib.suppress(Exception):
        while True:
            await socket.recv()


def _abort(socket: ClientConnection) -> None:
    with contextlib.suppress(Exception):  # a transport that has ended already has nothing to abort
        socket.transport.abort()


def _batches(commands: list[Command]) -> list[list[Command]]:
    """Groups of commands for one frame, bounded by number and by bytes."""
    batches: list[list[Command]] = []
    size = BATCH_BYTES_MAX
    was_alone = False
    for command in commands:
        more = _size_of(command)
        size += more
        is_alone = isinstance(command, Publish) and command.is_alone
        if size >= BATCH_BYTES_MAX or len(batches[-1]) >= BATCH_COMMANDS_MAX or is_alone or was_alone:
            batches.append([])
            size = more
        batches[-1].append(command)
        was_alone = is_alone
    return batches


def _size_of(command: Command) -> int:
    """The approximate bytes of a command: the values that the program passed, and the positions to resume from."""
    if isinstance(command, Publish):
        return len(command.draft.content) + command.draft.fields_bytes
    if isinstance(command, Subscribe):
        return sum(len(subject) + POSITION_BYTES for subject in command.resume_point.after)
    return 0
