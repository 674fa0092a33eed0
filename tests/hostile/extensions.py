"""Hostile extensions: each kind of misbehaviour has a name, and any method of an authorizer or an audit can show it.

A token names the kind for `connect` and `update_token`, the last segment of a selector for `subscribe` and `publish`. matrix.py makes its
table from `KINDS`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule, SelectorQuestion
from godwit.access.rights import Action, Verdict
from godwit.audit import Audit, Event
from godwit.codes import Code
from godwit.errors import AuthorizerFailed

BLOCK_S = 1.5
LATE_S = 0.6
"""Longer than every time limit of the tests."""
HUGE = 10_000_000


def forge(**fields: Any) -> Grant:
    """A grant whose constructor never ran."""
    grant = object.__new__(Grant)
    for name, value in ({"rules": (), "expires_ms": None, "token_id": None, "tenant": ""} | fields).items():
        object.__setattr__(grant, name, value)
    return grant


def forge_reason(reason: Any) -> Refusal:
    """A refusal whose constructor never ran."""
    refusal = object.__new__(Refusal)
    object.__setattr__(refusal, "reason", reason)
    object.__setattr__(refusal, "code", Code.CONNECT_REFUSED)
    return refusal


def forge_rule(pattern: Any) -> Rule:
    """A rule whose constructor never ran."""
    rule = object.__new__(Rule)
    for name, value in (("pattern", pattern), ("actions", Action.BOTH), ("verdict", Verdict.ALLOW)):
        object.__setattr__(rule, name, value)
    return rule


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


async def leak_threads() -> Any:
    is_over = threading.Event()
    LEFT.append(is_over)
    for _ in range(50):
        threading.Thread(target=is_over.wait, args=(60,), daemon=True).start()
    raise RuntimeError("fifty threads more")


async def wait_past_the_limit() -> None:
    until = time.monotonic() + LATE_S
    while time.monotonic() < until:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(until - time.monotonic())


async def answer_late() -> Any:
    await wait_past_the_limit()
    return GOOD


async def fail_late() -> Any:
    await wait_past_the_limit()
    raise RuntimeError("late")


async def exit_late() -> Any:
    await wait_past_the_limit()
    sys.exit(4)


async def raise_a_huge_error() -> Any:
    raise RuntimeError("x" * HUGE)


async def raise_an_error_without_text() -> Any:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    raise Odd


async def raise_an_error_of_the_nodes_with_evil_words() -> Any:
    raise AuthorizerFailed(EvilText("no"))


async def raise_a_group_with_an_exit() -> Any:
    raise BaseExceptionGroup("all", [SystemExit(5), KeyboardInterrupt()])


async def raise_the_end_of_a_generator() -> Any:
    raise GeneratorExit


class LyingClass:
    """Says that it is a grant, and has none of its fields."""

    __class__ = Grant  # type: ignore[assignment]  # the lie


class EvilNumber(int):
    """Says that it is within bounds; as a number it is not."""

    def __ge__(self, other: object) -> bool:
        return True

    __le__ = __ge__

    def __int__(self) -> int:
        return 2**80


class EvilText(str):
    """Says that it is short and printable."""

    def __len__(self) -> int:
        return 3

    def isprintable(self) -> bool:
        return True

    def encode(self, *_: Any) -> bytes:
        return b"ann"

    def __str__(self) -> str:
        if threading.current_thread() is threading.main_thread():
            raise RuntimeError("code of the extension's runs on the node's thread")
        return self

    __getitem__ = __format__ = lambda self, _: self  # type: ignore[assignment,misc]  # what it returns is evil, too


async def _make_nothing() -> None: ...


async def _generate_nothing() -> AsyncIterator[None]:
    yield None


def make_coroutine() -> Any:
    """One that nobody has to await."""
    made = _make_nothing()
    made.close()
    return made


GOOD = object()
"""What the method answers when all is well."""
LEFT: list[Any] = []
KINDS: dict[str, tuple[Callable[[], Any], ...]] = {
    "raises": (
        raise_an_error_without_text,
        raise_an_error_of_the_nodes_with_evil_words,
        raise_the_end_of_a_generator,
        raise_a_huge_error,
    ),
    "exits": (exit_now, interrupt, leave_a_task_that_exits, raise_a_group_with_an_exit),
    "hangs": (swallow_cancellation, block_the_loop, hang),
    "leaks": (leak_tasks, leak_descriptors, leak_threads),
    "cancels": (await_a_cancelled_task, cancel_all_tasks, stop_the_loop),
    "is late": (answer_late, fail_late, exit_late),
    "answers the wrong type": (),
    "answers something huge": (),
}
"""In each kind, what ends with a wait for good comes last."""
HARMS: dict[str, Callable[[], Awaitable[Any]]] = {harm.__name__: harm for harms in KINDS.values() for harm in harms}
ANSWERS: dict[str, dict[str, Callable[[], Any]]] = {
    "answers the wrong type": {
        "float_end": lambda: forge(identity="ann", expires_ms=1e12),
        "number_as_token_id": lambda: forge(identity="ann", token_id=12345),
        "bytes_as_identity": lambda: forge(identity=b"ann"),
        "half_a_character": lambda: forge(identity="\ud800"),
        "text_as_rule": lambda: forge(identity="ann", rules=("/a/**",)),
        "exception_as_reason": lambda: forge_reason(ValueError("no")),
        "number_as_pattern": lambda: forge(identity="ann", rules=(forge_rule(7),)),
        "number_out_of_bounds": lambda: forge(identity="ann", expires_ms=EvilNumber(2**80)),
        "text_out_of_bounds": lambda: forge(identity=EvilText("a\nb" * 1_000)),
        "nothing": lambda: None,
        "a_dict": lambda: {"identity": "ann"},
        "a_number": lambda: 1,
        "the_class": lambda: Grant,
        "a_lying_class": LyingClass,
        "an_exception": lambda: ValueError("no"),
        "a_generator": lambda: (one for one in ()),
        "an_async_generator": _generate_nothing,
        "a_coroutine": make_coroutine,
    },
    "answers something huge": {
        "huge_text": lambda: "x" * HUGE,
        "huge_identity": lambda: forge(identity="x" * HUGE),
        "huge_rule": lambda: forge(identity="ann", rules=(forge_rule("/" + "x" * HUGE),)),
        "endless_rules": lambda: forge(identity="ann", rules=iter(lambda: Rule.allow("/a"), None)),
    },
}
_MADE: dict[str, Callable[[], Any]] = {name: make for answers in ANSWERS.values() for name, make in answers.items()}


def list_harms(kind: str) -> list[str]:
    """The names of a kind's harms and wrong answers."""
    return [*(harm.__name__ for harm in KINDS[kind]), *ANSWERS.get(kind, ())]


async def do_harm(name: str, good: Any = None) -> Any:
    """`good`: what the method answers when all is well."""
    answer = await HARMS[name]() if name in HARMS else _MADE[name]()
    return good if answer is GOOD else answer


class HostileAuthorizer(Authorizer):
    """A token is the name of a harm, or an identity that may go in; a selector's last segment is a harm, too."""

    async def connect(self, question: ConnectQuestion) -> Any:
        if question.token in HARMS or question.token in _MADE:
            return await do_harm(str(question.token), Grant("late", [Rule.allow("/**")]))
        return Grant(question.token or "anybody", [Rule.allow("/free/**"), Rule.ask("/asked/**")])

    async def update_token(self, question: ConnectQuestion) -> Any:
        return await do_harm(str(question.token), Grant("good", [Rule.allow("/**")]))

    async def subscribe(self, question: SelectorQuestion) -> Any:
        return await do_harm(question.selector.rpartition("/")[2], True)

    publish = subscribe


class HarmAtEnds:
    """Does a harm in `start` or `stop` of an extension."""

    in_start = in_stop = ""

    async def start(self) -> Any:
        return await do_harm(self.in_start) if self.in_start else None

    async def stop(self) -> Any:
        return await do_harm(self.in_stop) if self.in_stop else None


class HostileAudit(HarmAtEnds, Audit):
    """Does `harm` at each of its first batches, and takes the rest."""

    harm = "exit_now"
    harms_left = taken = 0

    async def take(self, events: Sequence[Event]) -> Any:
        if self.harms_left > 0:
            self.harms_left -= 1
            return await do_harm(self.harm)
        self.taken += len(events)
        return None


class HostileEnds(HarmAtEnds, Authorizer):
    """Lets everybody in as who their token says."""

    async def connect(self, question: ConnectQuestion) -> Grant:
        return Grant(question.token or "anybody", [Rule.allow("/free/**")])


AUTHORIZER, AUDIT, ENDS = HostileAuthorizer(), HostileAudit(), HostileEnds()
