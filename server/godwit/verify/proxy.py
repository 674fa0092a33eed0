"""A TCP proxy with a lane for each client, in which its connections can be cut, made half-open, or stalled.

A cut resets both sides after a given number of further bytes, so that it happens within frames and handshakes. A
half-open connection drops data in both directions and does not report that the other side has closed. While one side does
not read, the other is not read either; the kernel's buffers are small, so that a stalled reader soon has an effect.
"""

from __future__ import annotations

import asyncio
import socket
import struct

BUFFER_BYTES = 16_384
HIGH_WATER_BYTES = 32_768
NOTHING = struct.pack("ii", 1, 0)


class Lane:
    """One client's connections to the broker; `port` is the port for the client."""

    def __init__(self, proxy: Proxy, name: str) -> None:
        self.proxy, self.name = proxy, name
        self.port = 0
        self.passed_bytes = 0
        self.cuts = 0
        self.budget: int | None = None  # bytes that still pass before the cut
        self._pairs: set[_Pair] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        listener = socket.socket()
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF):  # what it accepts has them too
            listener.setsockopt(socket.SOL_SOCKET, buffer, BUFFER_BYTES)
        listener.bind(("127.0.0.1", 0))
        self._server = await loop.create_server(lambda: _Pair(self).near, sock=listener)
        self.port = listener.getsockname()[1]

    def cut(self, after_bytes: int = 0) -> None:
        """Reset the open connections, at once or after this many further bytes."""
        if after_bytes > 0:
            self.budget = after_bytes
            return
        self.budget = None
        for pair in list(self._pairs):
            self.cuts += not pair.is_swallowed
            pair.reset()

    def half_open(self) -> None:
        """Make the open connections half-open; new ones work."""
        for pair in self._pairs:
            pair.is_swallowed = True
            pair.hold(False)

    def stall(self, is_stalled: bool) -> None:
        """Stop reading from the broker for the open connections, like a client that stopped reading."""
        for pair in self._pairs:
            pair.hold(is_stalled)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for pair in list(self._pairs):
            pair.reset()

    @property
    def openings(self) -> list[asyncio.Task[None]]:
        """Connections that are still being opened to the broker."""
        return [pair.opening for pair in self._pairs if pair.opening is not None and not pair.opening.done()]

    def add(self, pair: _Pair) -> None:
        self._pairs.add(pair)

    def remove(self, pair: _Pair) -> None:
        self._pairs.discard(pair)


class Proxy:
    """All lanes to one broker; `target` can change. Without a target connections are refused."""

    def __init__(self, target: tuple[str, int] | None) -> None:
        self.target = target
        self.lanes: dict[str, Lane] = {}

    async def lane(self, name: str) -> Lane:
        lane = self.lanes[name] = Lane(self, name)
        await lane.open()
        return lane

    def cut_all(self) -> None:
        for lane in self.lanes.values():
            lane.cut()

    async def close(self) -> None:
        openings = [opening for lane in self.lanes.values() for opening in lane.openings]
        for lane in self.lanes.values():
            lane.close()
        await asyncio.gather(*openings, return_exceptions=True)  # one that is cancelled closes its socket as it ends
        await asyncio.sleep(0)  # the transports that were aborted end in the next turn

    @property
    def passed_bytes(self) -> int:
        return sum(lane.passed_bytes for lane in self.lanes.values())

    @property
    def cuts(self) -> int:
        return sum(lane.cuts for lane in self.lanes.values())


class _Pair:
    """The two sockets of one connection."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.near, self.far = _Side(self, is_near=True), _Side(self, is_near=False)
        self.is_swallowed = False
        self.opening: asyncio.Task[None] | None = None

    def opened(self) -> None:
        self.lane.add(self)
        self.near.pause()
        self.opening = asyncio.get_running_loop().create_task(self._open_far())

    async def _open_far(self) -> None:
        target = self.lane.proxy.target
        try:
            if target is None:
                raise ConnectionRefusedError
            outgoing = socket.socket()
            outgoing.setblocking(False)
            outgoing.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            loop = asyncio.get_running_loop()
            try:
                await loop.sock_connect(outgoing, target)
            except BaseException:
                outgoing.close()
                raise
            await loop.create_connection(lambda: self.far, sock=outgoing)
        except OSError:
            self.reset()
            return
        self.near.resume()

    def passed(self, side: _Side, chunk: bytes) -> None:
        lane = self.lane
        if self.is_swallowed:
            return
        lane.passed_bytes += len(chunk)
        other = self.far if side is self.near else self.near
        if lane.budget is not None:
            if len(chunk) >= lane.budget:
                other.write(chunk[: lane.budget])
                lane.cut()
                return
            lane.budget -= len(chunk)
        other.write(chunk)

    def hold(self, is_held: bool) -> None:
        self.far.hold(is_held)

    def ended(self, side: _Side) -> None:
        """One side has closed. A half-open connection does not report it to the other; it ends when both have closed."""
        other = self.far if side is self.near else self.near
        if self.is_swallowed and not other.is_gone:
            return
        self.reset()

    def reset(self) -> None:
        if self.opening is not None and not self.opening.done():
            self.opening.cancel()
        self.lane.remove(self)
        self.near.abort()
        self.far.abort()


class _Side(asyncio.Protocol):
    """One socket of a pair."""

    def __init__(self, pair: _Pair, is_near: bool) -> None:
        self._pair, self._is_near = pair, is_near
        self._transport: asyncio.Transport | None = None
        self._is_held = self._waits = False
        self.is_gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        if self._is_near:
            self._pair.opened()

    def data_received(self, data: bytes) -> None:
        self._pair.passed(self, data)

    def pause_writing(self) -> None:
        self._other.pause()

    def resume_writing(self) -> None:
        self._other.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone = True
        self._pair.ended(self)

    def write(self, chunk: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(chunk)

    def pause(self) -> None:
        self._waits = True
        self._read_or_not()

    def resume(self) -> None:
        self._waits = False
        self._read_or_not()

    def hold(self, is_held: bool) -> None:
        self._is_held = is_held
        self._read_or_not()

    def abort(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            raw = self._transport.get_extra_info("socket")
            if raw is not None:
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NOTHING)
            self._transport.abort()

    @property
    def _other(self) -> _Side:
        return self._pair.far if self._is_near else self._pair.near

    def _read_or_not(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._is_held or self._waits:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
