"""Runs a user's extension on a thread and event loop of its own, so that its failures do not affect the node.

Owns the boundary: any exception of an extension, SystemExit and KeyboardInterrupt included, becomes AuthorizerFailed. An
abandoned call is cancelled, and counted as stuck until it ends. A blocked event loop is logged with its stack. There is
no protection against `os._exit`, crashes of native code and use of memory. Invariant: every wait for an extension has a
limit.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any

from ..errors import AuthorizerFailed
from ..logs import read_logger

STUCK_CALLS_MAX = 10_000
"""Abandoned calls that have not ended. At this number, further calls of this extension fail at once."""
LOOK_S = 1.0
"""Seconds between two checks of the extension's loop. A loop that has not answered by the next check is blocked."""
END_S = 1.0
"""Seconds that an extension's remaining tasks, and then its thread, may take to end."""
STACK_FRAMES_MAX = 8
ERROR_CHARACTERS_MAX = 2_000
_Outcome = tuple[Any, AuthorizerFailed | None]
"""The result of a call, or its error."""
_Code = Coroutine[Any, Any, Any] | Generator[Any, None, Any]


class ExtensionHost:
    """The host of one extension. All methods are called on the node's event loop."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: Counter[str] = Counter(calls=0, failed=0, exits=0)
        self.stuck = 0
        self.is_blocked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_ending = False
        self._sign_is_due = False
        self._look: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        """Those that have not ended. A loop forgets a task that nothing wakes; the thread that deletes it would run its code."""

    async def call(self, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        """Run a call; returns its result. Raises AuthorizerFailed for any exception. If cancelled, it returns at once,
        even if the call still runs.
        """
        if self._is_ending:
            raise AuthorizerFailed(f"{self.name} has ended")
        if self.stuck >= STUCK_CALLS_MAX:
            raise AuthorizerFailed(f"{self.stuck:,} earlier calls of {self.name} have not ended")
        self._begin()
        self.counts["calls"] += 1
        call = _Call(self, function, arguments)
        self.post(call.begin)
        try:
            return await call.outcome
        except asyncio.CancelledError:
            call.give_up()
            raise
        except AuthorizerFailed:
            self.counts["failed"] += 1
            raise

    async def call_within(
        self, limit_ms: int, setting: str, function: Callable[..., Awaitable[Any]], *given: Any
    ) -> Any:
        """`call` with a time limit; the AuthorizerFailed names the setting if it is exceeded."""
        try:
            async with asyncio.timeout(limit_ms / 1000):
                return await self.call(function, *given)
        except TimeoutError as error:
            raise AuthorizerFailed(f"did not return within {limit_ms / 1000:g} s ({setting})") from error

    async def stop(self) -> None:
        """End the thread. A thread that does not end is abandoned and logged with its stack; it does not keep the process alive."""
        if self._look is not None:
            self._look.cancel()
        self._is_ending = True
        if self._thread is None or self._loop is None:
            return
        self.post(self._loop.stop)
        await asyncio.to_thread(self._thread.join, 2 * END_S)
        if self._thread.is_alive():
            read_logger().error("extension_abandoned", extension=self.name, stack=self.read_stack())

    def describe(self) -> str:
        """The current problem as a sentence; empty if there is none."""
        if self.is_blocked:
            return "its event loop is blocked"
        return f"{self.stuck:,} calls have not ended" if self.stuck else ""

    def post(self, work: Callable[[], object]) -> None:
        """Run work on the extension's loop; ignored if the loop is closed."""
        if self._loop is not None:
            _send(self._loop, work)

    def read_stack(self) -> str:
        """The stack of the extension's thread."""
        frame = sys._current_frames().get(self._thread.ident or 0) if self._thread is not None else None
        if frame is None:
            return ""
        found = traceback.extract_stack(frame)[-STACK_FRAMES_MAX:]
        return " < ".join(f"{one.filename}:{one.lineno} {one.name}" for one in reversed(found))

    def _begin(self) -> None:
        if self._thread is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_exception_handler(self._log_loop_error)
            self._loop.set_task_factory(self._make_task)
            name = f"godwit-{self.name}"[:60]
            self._thread = threading.Thread(target=self._work, args=(self._loop,), name=name, daemon=True)
            self._thread.start()
            self._look_after()

    def _look_after(self) -> None:
        """Check whether the loop answered the last check, and send the next one."""
        if self._sign_is_due and not self.is_blocked:
            self.is_blocked = True
            read_logger().error("extension_blocked", extension=self.name, stack=self.read_stack())
        elif not self._sign_is_due:
            self._sign_is_due = True
            home = asyncio.get_running_loop()
            self.post(lambda: _send(home, self._take_sign))
        self._look = asyncio.get_running_loop().call_later(LOOK_S, self._look_after)

    def _take_sign(self) -> None:
        self._sign_is_due = False
        if self.is_blocked:
            self.is_blocked = False
            read_logger().info("extension_unblocked", extension=self.name)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """The thread. A SystemExit from a task of the extension ends one run of the loop; the loop is then run again."""
        asyncio.set_event_loop(loop)
        while not self._is_ending:
            try:
                loop.run_forever()
            except BaseException as error:
                self.counts["exits"] += 1
                read_logger().error("extension_exited", extension=self.name, reason=describe_error(error))
        with suppress(BaseException):
            _end_tasks(loop)
        with suppress(BaseException):
            loop.close()

    def _make_task(self, loop: asyncio.AbstractEventLoop, code: _Code, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(code, loop=loop, **options)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _log_loop_error(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        why = describe_error(error) if error is not None else str(context.get("message", ""))
        read_logger().warning("extension_task_failed", extension=self.name, reason=why)


class _Call:
    """One call: begins and ends on the extension's loop; its result is passed to the caller's loop."""

    def __init__(
        self, host: ExtensionHost, function: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]
    ) -> None:
        self._host, self._function, self._arguments = host, function, arguments
        self._home = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Any] = self._home.create_future()
        self._task: asyncio.Task[_Outcome] | None = None
        self._is_given_up = self._has_ended = False

    def begin(self) -> None:
        """Begin the call, on the extension's loop."""
        if self._is_given_up:
            _send(self._home, lambda: self._end(None, None))
        else:
            self._task = asyncio.get_running_loop().create_task(self._run())
            # a task that is cancelled before its first step runs nothing of its function, and ends all the same
            self._task.add_done_callback(self._report)

    def give_up(self) -> None:
        """Abandon the call, on the caller's loop."""
        self._is_given_up = True
        if not self._has_ended:
            self._host.stuck += 1
            self._host.post(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> _Outcome:
        try:
            return await self._function(*self._arguments), None
        except (
            BaseException
        ) as raised:  # an exit, an interrupt or a cancellation of the extension's own making is its failure
            return None, AuthorizerFailed(describe_error(raised))

    def _report(self, task: asyncio.Task[_Outcome]) -> None:
        """Pass the result to the caller, on the extension's loop."""
        value, error = (None, AuthorizerFailed("it was cancelled")) if task.cancelled() else task.result()
        _send(self._home, lambda: self._end(value, error))

    def _end(self, value: Any, error: AuthorizerFailed | None) -> None:
        self._has_ended = True
        if self._is_given_up:
            self._host.stuck -= 1
        if self.outcome.done():
            return
        if error is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(value)


def describe_error(error: BaseException) -> str:
    """The type and text of an error, even if its own `__str__` fails. The result is a plain str: a subclass from the
    extension would run its code wherever it is shown.
    """
    try:
        words = str.__getitem__(str(error), slice(ERROR_CHARACTERS_MAX))
        return words if type(error) is AuthorizerFailed else f"{type(error).__name__}: {words}"
    except BaseException:
        return "an error whose text cannot be read"


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=END_S))
    loop.run_until_complete(loop.shutdown_asyncgens())


def _send(home: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # that loop is closed: no task waits
        home.call_soon_threadsafe(work)
