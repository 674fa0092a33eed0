"""Very many connected inboxes: how long after a restart of dispatch all of them have their head, and the effect on other
clients.

Node and dispatch are processes of their own. Each client has its own receiver and token and is one WebSocket. The "other clients" are those
of the load generator, which publish and subscribe on subjects of their own. A node needs a descriptor for each connection: as many as
`ulimit -n` allows are opened.
"""

from __future__ import annotations

import asyncio
import json
import resource
import time
from pathlib import Path
from typing import Any

from godwit.bench.generator import run_plan
from godwit.dispatch.tokens import SigningKey

from .loads import import_receivers
from .server import OPTIONS, Options, find_server, read_listeners, set_all, start, stop

RECEIVERS = 10_000
SPARE = 600
"""File descriptors that a process needs for other purposes."""
OPENING = 64
OTHERS = {"subscribers": 50, "subjects": 10, "publishers": 5}
RATE = 500.0
CLOSE, PING, PONG = 8, 9, 10
PART_S, PARTS_ALONE, PARTS = 2.0, 4, 14
"""Other clients are measured in parts: alone, and then while dispatch restarts."""


class Heads(asyncio.Protocol):
    """A client of an inbox that only counts the frames with its head."""

    def __init__(self, token: str, subject: str, arrived: Counting) -> None:
        self._token, self._subject, self._arrived = token, subject, arrived
        self._is_upgraded, self._buffer = False, b""
        self.joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(
            f"GET /v1/live HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nAuthorization: Bearer {self._token}\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            "Sec-WebSocket-Protocol: godwit.v1.json\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_upgraded:
            head, end, self._buffer = self._buffer.partition(b"\r\n\r\n")
            if not end or not head.startswith(b"HTTP/1.1 101"):
                self._fail(RuntimeError(head.decode(errors="replace")))
                return
            self._is_upgraded = True
            for number, subject in enumerate((self._subject, f"{self._subject}/head")):
                self._transport.write(make_frame(json.dumps({"id": number, "subscribe": subject}).encode()))
        while (frame := self._take_frame()) is not None:
            self._read(*frame)

    def _take_frame(self) -> tuple[int, bytes] | None:
        """The next whole frame: its opcode and payload. The server sends none over 64 KiB here."""
        if len(self._buffer) < 4:
            return None
        size, begin = self._buffer[1], 2
        if size == 126:
            size, begin = int.from_bytes(self._buffer[2:4], "big"), 4
        if len(self._buffer) < begin + size:
            return None
        opcode, payload = self._buffer[0] & 15, self._buffer[begin : begin + size]
        self._buffer = self._buffer[begin + size :]
        return opcode, payload

    def _read(self, opcode: int, payload: bytes) -> None:
        if opcode == PING:
            self._transport.write(make_frame(payload, 0x80 | PONG))
        elif opcode == CLOSE:
            self._fail(RuntimeError(f"closed by the node: {payload!r}"))
        elif self._is_counted(payload):
            self._arrived.add(self)
        elif b'"error"' in payload:
            self._fail(RuntimeError(payload.decode(errors="replace")))
        if b'"id":1' in payload and not self.joined.done():
            self.joined.set_result(None)

    def _is_counted(self, payload: bytes) -> bool:
        return b'"head":' in payload

    def _fail(self, error: Exception) -> None:
        if not self.joined.done():
            self.joined.set_exception(error)
        else:
            self._arrived.fail(error)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or ConnectionResetError())


class Counting:
    """The clients that have received their head, once each, since `begin`."""

    def __init__(self) -> None:
        self._who: set[Heads] = set()
        self._wanted, self.done = 0, asyncio.get_running_loop().create_future()

    def begin(self, wanted: int) -> None:
        self._who.clear()
        self._wanted = wanted
        self.done = asyncio.get_running_loop().create_future()

    def add(self, client: Heads) -> None:
        self._who.add(client)
        if len(self._who) >= self._wanted and not self.done.done():
            self.done.set_result(None)

    def fail(self, error: Exception) -> None:
        """A client lost its connection."""
        if not self.done.done():
            self.done.set_exception(error)

    def __len__(self) -> int:
        return len(self._who)


def make_frame(payload: bytes, first: int = 0x81) -> bytes:
    """A frame of a client, by default with text; the mask is zero."""
    size = bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
    return bytes([first]) + size + bytes(4) + payload


async def measure(options: Options) -> dict[str, Any]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    receivers = min(options.receivers or RECEIVERS, hard - SPARE)
    folder, data = options.folder, str(options.folder / "dispatch-data")
    (folder / "dispatch-data").mkdir(mode=0o700)
    keys = folder / "dispatch-data" / "dispatch" / "keys.json"
    first = start(
        "dispatch", "run", "all", "--data", data, *AWAY, runtime=folder
    )  # makes the keys that the node trusts
    server = find_server(first.pid, (await read_listeners(first))["dispatch"], Path(data))
    await asyncio.to_thread(import_receivers, server, receivers)
    stop(first)
    settings = [f"dispatch.token_keys_file={keys}", "limits.handshake_ms_max=60000"]  # of a busy machine
    node = start("serve", *OPTIONS[:-2], *set_all(settings), runtime=folder)
    try:
        client = (await read_listeners(node))["client"]
        return {"receivers": receivers, **await restart_dispatch(folder, data, client, receivers)}
    finally:
        stop(node)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


AWAY = set_all(["dispatch.address=127.0.0.1:0", "dispatch.node_url=ws://127.0.0.1:9"])


async def restart_dispatch(folder: Path, data: str, client: str, receivers: int) -> dict[str, Any]:
    """Connect all clients, measure the others alone, then restart dispatch while they are measured too."""
    words = (
        "dispatch",
        "run",
        "all",
        "--data",
        data,
        *set_all([f"dispatch.node_url=ws://{client}", "dispatch.address=127.0.0.1:0"]),
    )
    dispatch = start(*words, runtime=folder)
    try:
        await read_listeners(dispatch)
        counting = Counting()
        counting.begin(receivers)
        began = time.perf_counter()
        clients = await connect_all(Path(data), client, receivers, counting)
        connected_s = time.perf_counter() - began
        await counting.done
        is_next = asyncio.Event()
        others = asyncio.create_task(asyncio.to_thread(measure_others, client, asyncio.get_running_loop(), is_next))
        await is_next.wait()
        stop(dispatch)
        counting.begin(receivers)
        began = time.perf_counter()
        dispatch = start(*words, runtime=folder)
        await read_listeners(dispatch)
        listening_s = time.perf_counter() - began
        await counting.done
        heads_s = time.perf_counter() - began
        latencies = await others
    finally:
        stop(dispatch)
    for one in clients:
        one.abort()
    touched = 1 + int(heads_s / PART_S)
    alone, during = latencies[:PARTS_ALONE], latencies[PARTS_ALONE : PARTS_ALONE + touched]
    return {
        "connected_in_s": connected_s,
        "dispatch_listening_after_s": listening_s,
        "all_heads_after_s": heads_s,
        "heads_per_s": receivers / (heads_s - listening_s),
        "others_p99_ms_alone": alone,
        "others_p99_ms_during": during,
        "others_p99_ratio": max(during) / max(alone),
    }


async def connect_all(
    data: Path, client: str, receivers: int, counting: Counting, kind: type[Heads] = Heads, first: int = 0
) -> list[asyncio.Transport]:
    """Connects the receivers from number `first` up to `receivers`."""
    host, _, port = client.rpartition(":")
    loop, signing = asyncio.get_running_loop(), SigningKey(data / "dispatch" / "token.key")
    opening, transports = asyncio.Semaphore(OPENING), []

    async def connect(number: int) -> None:
        token, _ = signing.sign_receiver("default", f"user:{number}", 3_600_000)
        subject = f"/$inbox/default/user:{number}"
        async with opening:
            source = (f"127.0.1.{1 + number // 8_000}", 0)  # an address has 28,000 ports
            transport, heads = await loop.create_connection(
                lambda: kind(token, subject, counting), host, int(port), local_addr=source
            )
            transports.append(transport)
            await heads.joined

    await asyncio.gather(*(connect(number) for number in range(first, receivers)))
    return transports


def measure_others(client: str, loop: asyncio.AbstractEventLoop, is_next: asyncio.Event) -> list[float]:
    """The p99 of clients without dispatch, in ms, for each part of the time; `is_next` is set when they were measured alone."""
    publishes = [
        {"do": "publish", "name": f"part {number}", "messages": int(RATE * PART_S), "rate": RATE}
        for number in range(PARTS)
    ]
    steps = [{"do": "connect", "name": "connect"}, *publishes]
    plan = {"dialect": "godwit-json", "address": client, **OTHERS, "steps": steps, "is_acked": True}

    def show(text: str) -> None:
        if text.startswith(f"part {PARTS_ALONE} "):
            loop.call_soon_threadsafe(is_next.set)

    found = run_plan(plan, show)
    assert found["is_exact"], found["fault"]
    return [step["latency"]["p99_us"] / 1e3 for step in found["steps"][1:]]
