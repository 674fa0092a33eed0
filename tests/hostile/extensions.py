"""Hostile extensions, by name: each does one harm in each of its methods, to whoever's token or client asks for it."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule, SelectorQuestion
from godwit.audit import Audit, Event

BLOCK_S = 1.5


def forge(**fields: Any) -> Grant:
    """A grant whose constructor never ran."""
    grant = object.__new__(Grant)
    for name, value in ({"rules": (), "expires_ms": None, "token_id": None, "tenant": ""} | fields).items():
        object.__setattr__(grant, name, value)
    return grant


async def exit_now() -> Any:
    sys.exit(9)


async def interrupt() -> Any:
    raise KeyboardInterrupt


async def hang() -> Any:
    await asyncio.Event().wait()


async def swallow_cancellation() -> Any:
    until = time.monotonic() + BLOCK_S
    while time.monotonic() < until:
        try:
            await asyncio.sleep(BLOCK_S)
        except asyncio.CancelledError:
            continue


async def block_the_loop() -> Any:
    until = time.monotonic() + BLOCK_S
    while time.monotonic() < until:
        pass


async def await_a_cancelled_task() -> Any:
    task = asyncio.create_task(asyncio.sleep(0))
    task.cancel()
    await task


async def cancel_all_tasks() -> Any:
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0)


async def stop_the_loop() -> Any:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    raise RuntimeError("stopped")


async def leave_a_task_that_exits() -> Any:
    async def later() -> None:
        sys.exit(3)

    LEFT.append(asyncio.create_task(later()))
    raise RuntimeError("and fails itself")


async def leak_tasks() -> Any:
    LEFT.extend(asyncio.create_task(asyncio.sleep(3_600)) for _ in range(1_000))
    raise RuntimeError("a thousand tasks more")


async def leak_descriptors() -> Any:
    LEFT.extend(os.pipe())
    gc.collect()
    raise RuntimeError("two descriptors fewer")


LEFT: list[Any] = []
HARMS: dict[str, Callable[[], Awaitable[Any]]] = {
    harm.__name__: harm
    for harm in (
        exit_now,
        interrupt,
        hang,
        swallow_cancellation,
        block_the_loop,
        await_a_cancelled_task,
        cancel_all_tasks,
        stop_the_loop,
        leave_a_task_that_exits,
        leak_tasks,
        leak_descriptors,
    )
}
ANSWERS: dict[str, Callable[[], Any]] = {
    "float_end": lambda: forge(identity="ann", expires_ms=1e12),
    "number_as_token_id": lambda: forge(identity="ann", token_id=12345),
    "bytes_as_identity": lambda: forge(identity=b"ann"),
    "half_a_character": lambda: forge(identity="\ud800"),
    "text_as_rule": lambda: forge(identity="ann", rules=("/a/**",)),
    "endless_rules": lambda: Grant("ann", iter(lambda: Rule.allow("/a"), None)),
    "exception_as_reason": lambda: Refusal(ValueError("no")),  # type: ignore[arg-type]  # what a user may write
    "nothing": lambda: None,
    "a_dict": lambda: {"identity": "ann"},
    "the_class": lambda: Grant,
    "an_exception": lambda: ValueError("no"),
    "huge_text": lambda: "x" * 10_000_000,
}


async def do_harm(name: str) -> Any:
    return await HARMS[name]() if name in HARMS else ANSWERS[name]()


class HostileAuthorizer(Authorizer):
    """A token is the name of a harm, or `good`; a selector's last segment is one, too."""

    async def connect(self, question: ConnectQuestion) -> Any:
        if question.token in HARMS or question.token in ANSWERS:
            return await do_harm(str(question.token))
        return Grant(question.token or "anybody", [Rule.allow("/free/**"), Rule.ask("/asked/**")])

    async def update_token(self, question: ConnectQuestion) -> Any:
        return await do_harm(str(question.token))

    async def subscribe(self, question: SelectorQuestion) -> Any:
        return await do_harm(question.selector.rpartition("/")[2])

    publish = subscribe


class HarmAtEnds:
    """Does a harm in `start` or `stop` of an extension."""

    in_start = in_stop = ""

    async def start(self) -> None:
        if self.in_start:
            await do_harm(self.in_start)

    async def stop(self) -> None:
        if self.in_stop:
            await do_harm(self.in_stop)


class HostileAudit(HarmAtEnds, Audit):
    """Does `harm` at each of its first batches, and takes the rest."""

    harm = "exit_now"
    harms_left = 0

    async def take(self, events: Sequence[Event]) -> None:
        if self.harms_left > 0:
            self.harms_left -= 1
            await do_harm(self.harm)
        self.taken = getattr(self, "taken", 0) + len(events)


class HostileEnds(HarmAtEnds, Authorizer):
    async def connect(self, question: ConnectQuestion) -> Grant:
        return Grant("anybody")


AUTHORIZER, AUDIT, ENDS = HostileAuthorizer(), HostileAudit(), HostileEnds()
