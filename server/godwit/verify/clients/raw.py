"""A subscriber without a client library: one connection, one subscription.

After every loss it reconnects and resumes by its positions, its resume token, or both. It can read slowly, and can be
made to stop reading. It closes a connection that does not answer pings, so that half-open connections end.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Subprotocol

from ...client import FrameInvalid, ResumePoint
from ...client.codec.command import Choice, Ping, Subscribe
from ...client.codec.encodings import ENCODINGS
from ...client.codec.push import Ended, Marked, Received
from ...client.codec.reply import Refusal, Reply
from ...client.items import Dropped
from ...model import Gap, Message, Position
from ..judge.checker import Checker
from ..plan import SubscriberPlan
from ..reading import Reading
from ..timing import Clock
from ..trace import Trace

OPEN_TIMEOUT_S = 5.0
SILENCE_MS_MAX = 2_500  # then it pings
DEAD_MS = 5_000  # then it gives the connection up
BACK_OFF_S = (0.02, 0.05, 0.1, 0.2, 0.4)
KERNEL_BYTES = 8_192  # what the kernel takes for a reader that stopped is small, so that the node feels it soon
FRAMES_QUEUED_MAX = 8  # between the socket and a reader that stopped
SUBSCRIBE_ID = 1


class RawSubscriber(Reading[asyncio.Event]):
    """Run it as a task; cancel it to end."""

    def __init__(self, mine: SubscriberPlan, url: str, checker: Checker, trace: Trace, clock: Clock) -> None:
        super().__init__(asyncio.Event())
        self.mine, self.checker, self.trace = mine, checker, trace
        self._url, self._clock = f"{url}/v1/live", clock
        host, _, port = url.removeprefix("ws://").rpartition(":")
        self._address = host, int(port)
        self._resume_token: str | None = None
        self._heard_ms = 0
        self._socket: ClientConnection | None = None
        self.refusals = 0

    def go_at_full_speed(self) -> None:
        super().go_at_full_speed()
        self._is_hurried = True

    _is_hurried = False

    async def run(self) -> None:
        failures = 0
        while True:
            try:
                async with asyncio.timeout(OPEN_TIMEOUT_S):
                    opened = await self._open()
            except (OSError, TimeoutError, InvalidHandshake, EOFError, ConnectionClosed):
                await asyncio.sleep(BACK_OFF_S[min(failures, len(BACK_OFF_S) - 1)])
                failures += 1
                continue
            failures = 0
            self.trace.up(self._clock())
            reason = await self._live(opened)
            self.trace.down(self._clock())
            self.checker.lost(self._clock(), reason)
            opened.transport.abort()
            with contextlib.suppress(Exception):
                await opened.close()

    async def _open(self) -> ClientConnection:
        encoding = ENCODINGS[self.mine.encoding]
        raw = socket.socket()
        raw.setblocking(False)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BYTES)
        try:
            await asyncio.get_running_loop().sock_connect(raw, self._address)
        except BaseException:
            raw.close()
            raise
        return await connect(
            self._url,
            sock=raw,
            subprotocols=[Subprotocol(encoding().subprotocol)],
            ping_interval=None,
            close_timeout=0.2,
            max_size=4 << 20,
            max_queue=FRAMES_QUEUED_MAX,
            compression=None,
            proxy=None,
        )

    async def _live(self, opened: ClientConnection) -> str:
        self._socket, self._heard_ms = opened, self._clock()
        encoding = ENCODINGS[self.mine.encoding]()
        watcher = asyncio.create_task(self._watch(opened, encoding.encode([Ping(2)])))
        try:
            await opened.send(encoding.encode([self._ask()]))
            while True:
                if not self._may_read.is_set():
                    await self._may_read.wait()
                    self._heard_ms = self._clock()
                decoded = encoding.decode(await opened.recv())
                self._heard_ms = now = self._clock()
                for each in decoded:
                    self._take(now, each)
                if self.mine.pace and not self._is_hurried:
                    await asyncio.sleep(len(decoded) / self.mine.pace)
        except ConnectionClosed as closed:
            return closed.rcvd.reason if closed.rcvd else "broken"
        except FrameInvalid as error:
            return f"a frame that cannot be read: {error}"
        finally:
            watcher.cancel()
            self._socket = None

    async def _watch(self, opened: ClientConnection, ping: str | bytes) -> None:
        while True:
            await asyncio.sleep(0.5)
            silence = self._clock() - self._heard_ms
            if not self._may_read.is_set():
                continue
            if silence > DEAD_MS:
                opened.transport.abort()
                return
            if silence > SILENCE_MS_MAX:
                with contextlib.suppress(ConnectionClosed):
                    await opened.send(ping)

    def _ask(self) -> Subscribe:
        mine, checker = self.mine, self.checker
        positions = {subject: state.reached for subject, state in checker.states.items() if state.reached is not None}
        resume_token = self._resume_token if mine.resumes_by != "positions" else None
        if checker.is_pattern and (resume_token is None or mine.resumes_by == "both"):
            resume_point = ResumePoint(positions, resume_token)
        else:
            resume_point = ResumePoint({}, resume_token) if checker.is_pattern else ResumePoint(positions)
        checker.asked(
            self._clock(),
            resume_token if checker.is_pattern and resume_point.since and not resume_point.after else None,
        )
        return Subscribe(
            SUBSCRIBE_ID, mine.selector, resume_point, Choice(on_gap=mine.on_gap, conflate_ms=mine.conflate_ms)
        )

    def _take(self, now: int, received: Received) -> None:
        checker = self.checker
        match received:
            case Message():
                checker.message(now, received)
            case Marked():
                self._resume_token = received.resume_token
                checker.marked(now, received.resume_token)
            case Gap():
                if received.position is None:
                    self._resume_token = None
                self.trace.gap(now, received.missed)
                checker.gap(now, received)
            case Reply() if received.id == SUBSCRIBE_ID:
                checker.joined(now, received.position, received.outcome, received.count)
            case Refusal() | Ended():
                self.refusals += 1
                if self._socket is not None:
                    self._socket.transport.abort()  # draining: reconnect
            case Dropped() | _:
                pass


def resume_point_of(checker: Checker) -> dict[str, Position]:
    """The positions of a checker, by subject."""
    return {subject: state.reached for subject, state in checker.states.items() if state.reached is not None}
