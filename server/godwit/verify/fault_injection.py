"""Injects the faults of a plan at their times, and records which were injected and which were not.

Faults of clients' connections use their lanes in the proxy; faults of the node need a node that was started here.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from .judge.context import CheckContext
from .node import FILES_MAX, Node, find_faketime
from .plan import OF_NODE, Fault, FaultKind
from .proxy import Proxy
from .timing import Clock

STRANGERS_MAX = FILES_MAX + 100
SETTLE_S = 0.1


class Stallable(Protocol):
    """A subscriber that can be made to stop reading."""

    def stall(self, is_stalled: bool) -> None: ...


@dataclass(slots=True)
class Done:
    """One injected fault."""

    fault_kind: FaultKind
    from_ms: int
    to_ms: int
    detail: str
    targets: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "fault_kind": self.fault_kind.value,
            "from_ms": self.from_ms,
            "to_ms": self.to_ms,
            "detail": self.detail,
            "clients": len(self.targets),
        }


class FaultInjection:
    """Runs the faults of a plan; `done` has the injected ones."""

    def __init__(
        self,
        faults: list[Fault],
        proxy: Proxy,
        node: Node | None,
        context: CheckContext,
        clock: Clock,
        stallable: Mapping[str, Stallable],
        stalled: Callable[[str, int, int], None],
        until_s: float,
    ) -> None:
        self._faults, self._proxy, self._node, self._context = faults, proxy, node, context
        self._clock, self._stallable, self._stalled = clock, stallable, stalled
        self._until_s = until_s
        self._later: set[asyncio.Task[None]] = set()
        self.done: list[Done] = []
        self.left_out: dict[FaultKind, str] = {}
        self.now = ""
        self.restarts = 0

    async def run(self) -> None:
        try:
            late_s = 0.0  # a fault that took longer than planned delays those that follow
            for fault in self._faults:
                late_s = max(late_s, self._clock() / 1000 - fault.at_s)
                if fault.at_s + late_s + fault.for_s > self._until_s:
                    break
                await asyncio.sleep(max(0.0, fault.at_s + late_s - self._clock() / 1000))
                reason = self._why_not(fault.fault_kind)
                if reason:
                    self.left_out[fault.fault_kind] = reason
                    continue
                await self._do(fault)
            if self._later:
                await asyncio.wait(self._later)  # the last of them last as long as any
        finally:
            for task in self._later:
                task.cancel()
            for subscriber in self._stallable.values():
                subscriber.stall(False)

    def _why_not(self, fault_kind: FaultKind) -> str:
        if fault_kind in OF_NODE and self._node is None:
            return "the node was not started here"
        if fault_kind is FaultKind.CLOCK and find_faketime() is None:
            return "libfaketime is not installed (Debian package libfaketime)"
        return ""

    async def _do(self, fault: Fault) -> None:
        done = Done(fault.fault_kind, self._clock(), self._clock(), "", fault.targets)
        self.done.append(done)
        self.now = fault.fault_kind.value
        if fault.fault_kind in (FaultKind.HALF_OPEN, FaultKind.STALL):
            task = asyncio.create_task(self._do_aside(fault, done))
            self._later.add(task)
            task.add_done_callback(self._later.discard)
            return
        match fault.fault_kind:
            case FaultKind.CUT:
                self._each(fault.targets, lambda name: self._proxy.lanes[name].cut(int(fault.amount)))
                done.detail = f"{len(fault.targets)} connections, after {fault.amount:.0f} more bytes"
            case FaultKind.STORM:
                self._proxy.cut_all()
                done.detail = "all connections"
            case _:
                assert self._node is not None
                await self._do_to_node(self._node, fault, done)
        done.to_ms = self._clock()
        self.now = ""

    async def _do_aside(self, fault: Fault, done: Done) -> None:
        """Run a fault that lasts while others are injected."""
        done.to_ms = done.from_ms + int(fault.for_s * 1000)
        done.detail = f"{len(fault.targets)} clients for {fault.for_s:.1f} s"
        if fault.fault_kind is FaultKind.HALF_OPEN:
            self._each(fault.targets, lambda name: self._proxy.lanes[name].half_open())
            return
        names = [name for name in fault.targets if name in self._stallable]
        self._each(names, lambda name: self._stallable[name].stall(True))
        try:
            await asyncio.sleep(fault.for_s)
        finally:
            self._each(names, lambda name: self._stallable[name].stall(False))
            self._each(names, lambda name: self._stalled(name, done.from_ms, self._clock()))

    async def _do_to_node(self, node: Node, fault: Fault, done: Done) -> None:
        match fault.fault_kind:
            case FaultKind.FREEZE:
                node.freeze(True)
                await asyncio.sleep(fault.for_s)
                node.freeze(False)
                done.detail = f"for {fault.for_s:.1f} s"
            case FaultKind.KILL | FaultKind.DRAIN:
                await (node.kill() if fault.fault_kind is FaultKind.KILL else node.drain())
                await self._start_again(node, fault.for_s)
                done.detail = f"restarted after {(self._clock() - done.from_ms) / 1000:.1f} s"
            case FaultKind.CLOCK:
                self._context.is_clock_moved = True
                node.move_clock(fault.amount)
                await asyncio.sleep(fault.for_s)
                done.detail = f"by {fault.amount:+.0f} s"
            case FaultKind.FILES:
                held = await self._fill_files(node, fault.for_s)
                done.detail = (
                    f"{held} other connections held for {fault.for_s:.1f} s; the node may open {FILES_MAX} files"
                )
            case _:
                raise AssertionError(fault.fault_kind)

    async def _start_again(self, node: Node, pause_s: float) -> None:
        """Close all connections of clients before the new run begins, so that the expected history can assign messages to runs."""
        self._proxy.target = None
        self._proxy.cut_all()
        await asyncio.sleep(SETTLE_S + pause_s)
        self._context.expected.restart()
        self._context.restarts += 1
        self.restarts += 1
        await node.start()
        self._proxy.target = node.address

    async def _fill_files(self, node: Node, for_s: float) -> int:
        """Connect until no more connections are accepted, hold them, and disconnect."""
        strangers = [socket.socket() for _ in range(STRANGERS_MAX)]
        try:
            for stranger in strangers:
                stranger.setblocking(False)
                stranger.connect_ex(node.address)  # under way; the kernel continues it
            await asyncio.sleep(for_s)
            return sum(_is_held(stranger) for stranger in strangers)
        finally:
            for stranger in strangers:
                stranger.close()

    def _each(self, names: tuple[str, ...] | list[str], act: Callable[[str], None]) -> None:
        for name in names:
            act(name)


def _is_held(stranger: socket.socket) -> bool:
    """Whether the node keeps this connection: it has neither closed nor refused it."""
    try:
        return len(stranger.recv(1)) > 0
    except BlockingIOError:
        return True
    except OSError:
        return False
