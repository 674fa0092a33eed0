"""For anything that an extension does on its thread, the node's loop continues, the caller gets a result, and everything is counted."""

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
import structlog

from godwit.errors import AuthorizerFailed
from godwit.extension import ExtensionHost
from godwit.extension import host as module
from tests.waiting import until


class Wordless(BaseException):
    def __str__(self) -> str:
        raise SystemExit("not even this")


async def exits() -> None:
    sys.exit(7)


async def interrupts() -> None:
    raise KeyboardInterrupt


async def awaits_a_cancelled_task() -> None:
    task = asyncio.create_task(asyncio.sleep(0))
    task.cancel()
    await task


async def cancels_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def is_wordless() -> None:
    raise Wordless


class Posing(AuthorizerFailed):
    def __str__(self) -> str:
        raise RuntimeError


async def poses_as_the_nodes_own() -> None:
    raise Posing("no")


async def closes_itself() -> None:
    raise GeneratorExit


async def good() -> int:
    return 42


def plain() -> int:
    return 1


@pytest.fixture
async def host() -> AsyncIterator[ExtensionHost]:
    made = ExtensionHost("test")
    yield made
    await made.stop()
    assert not any(thread.name == "godwit-test" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (exits, "SystemExit: 7"),
        (interrupts, "KeyboardInterrupt"),
        (awaits_a_cancelled_task, "CancelledError"),
        (cancels_itself, "CancelledError"),
        (is_wordless, "cannot be read"),
        (poses_as_the_nodes_own, "cannot be read"),
        (closes_itself, "GeneratorExit"),
        (plain, "TypeError"),
    ],
)
async def test_whatever_is_raised_is_the_calls_failure(
    host: ExtensionHost, function: Callable[..., Awaitable[Any]], why: str
) -> None:
    with pytest.raises(AuthorizerFailed, match=why):
        await host.call(function)
    assert await host.call(good) == 42 and host.counts["failed"] == 1 and host.stuck == 0


async def test_a_call_runs_on_the_extensions_thread(host: ExtensionHost) -> None:
    async def where() -> str:
        return threading.current_thread().name

    assert await host.call(where) == "godwit-test"


async def test_a_call_that_swallows_its_cancellation_is_over_for_the_caller_and_stuck_until_it_ends(
    host: ExtensionHost,
) -> None:
    began, release = threading.Event(), threading.Event()

    async def cling() -> None:
        began.set()
        while not release.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue

    while not began.is_set():  # on a busy machine it may be over before it began
        with pytest.raises(AuthorizerFailed, match=r"did not return within 0.05 s \(a.setting\)"):
            await host.call_within(50, "a.setting", cling)
    assert host.stuck == 1 and await host.call(good) == 42 and "1 calls" in host.describe()
    release.set()
    await until(lambda: not host.stuck)


async def test_a_task_that_nothing_wakes_is_not_deleted_by_a_thread_of_the_nodes(host: ExtensionHost) -> None:
    ran_on: list[str] = []
    began, is_over = threading.Event(), threading.Event()

    async def cling() -> None:
        began.set()
        try:
            while not is_over.is_set():
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
        finally:
            ran_on.append(threading.current_thread().name)

    while not began.is_set():  # on a busy machine it may be over before it began
        with pytest.raises(AuthorizerFailed, match="did not return within"):
            await host.call_within(50, "a.setting", cling)
    assert await host.call(good) == 42  # behind the cancellation
    gc.collect()
    assert (ran_on, host.stuck) == ([], 1)
    is_over.set()  # it ends when the host cancels it: as garbage it would be logged in the middle of a later test


async def test_at_the_bound_of_stuck_calls_the_next_fails_at_once(
    host: ExtensionHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STUCK_CALLS_MAX", 0)
    with pytest.raises(AuthorizerFailed, match="have not ended"):
        await host.call(good)


async def cancels_everything() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


async def test_a_call_that_is_cancelled_before_its_first_step_has_failed_and_is_not_stuck(host: ExtensionHost) -> None:
    calls = [host.call(function) for function in (cancels_everything, *[good] * 20)]
    async with asyncio.timeout(10):
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert all(outcome == 42 or isinstance(outcome, AuthorizerFailed) for outcome in outcomes) and host.stuck == 0


async def test_an_exit_in_a_task_of_the_extensions_own_ends_nothing(host: ExtensionHost) -> None:
    async def leave_a_task() -> asyncio.Task[None]:
        return asyncio.create_task(exits())

    with structlog.testing.capture_logs() as logs:
        kept = await host.call(leave_a_task)
        await until(lambda: host.counts["exits"])
        assert await host.call(good) == 42
    assert kept.done() and [event["event"] for event in logs] == ["extension_exited"]
    with pytest.raises(SystemExit):
        kept.result()


async def test_a_blocked_loop_is_logged_with_its_stack_and_the_nodes_goes_on(
    host: ExtensionHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.5)
    release = threading.Event()

    async def block() -> None:
        release.wait(60)

    with structlog.testing.capture_logs() as logs:
        with pytest.raises(AuthorizerFailed, match="did not return"):
            await host.call_within(1_000, "a.setting", block)
        await until(lambda: host.is_blocked)
        assert host.describe() == "its event loop is blocked"
        release.set()
        await until(lambda: not (host.is_blocked or host.stuck))
    assert [event["event"] for event in logs] == ["extension_blocked", "extension_unblocked"]
    assert "in block" in logs[0]["stack"] or "block" in logs[0]["stack"]


async def test_a_thread_that_does_not_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "END_S", 0.05)
    host, release = ExtensionHost("left"), threading.Event()

    async def block() -> None:
        release.wait(60)

    with structlog.testing.capture_logs() as logs:
        with pytest.raises(AuthorizerFailed):
            await host.call_within(1_000, "a.setting", block)
        await host.stop()
    assert [event["event"] for event in logs] == ["extension_abandoned"]
    with pytest.raises(AuthorizerFailed, match="has ended"):
        await host.call(good)
    release.set()
    [thread] = [thread for thread in threading.enumerate() if thread.name == "godwit-left"] or [None]
    if thread is not None:
        await asyncio.to_thread(thread.join, 60)
