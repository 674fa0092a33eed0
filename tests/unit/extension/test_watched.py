"""A watched task restarts after any end, until it is stopped."""

import asyncio

import pytest
import structlog

from godwit.extension import WatchedTask, watched


async def test_work_that_fails_is_cancelled_or_ends_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "WAIT_MIN_S", 0.001)
    began: list[int] = []
    runs = asyncio.Event()

    async def work() -> None:
        began.append(len(began))
        if len(began) == 1:
            raise RuntimeError("no disk")
        if len(began) == 2:
            cancelled = asyncio.create_task(asyncio.sleep(0))
            cancelled.cancel()
            await cancelled
        if len(began) == 4:
            runs.set()
            await asyncio.Event().wait()

    with structlog.testing.capture_logs() as logs:
        task = WatchedTask("fetch", work)
        await asyncio.wait_for(runs.wait(), 5)
    assert (task.restarts, task.reason) == (3, "")
    assert [event["reason"] for event in logs] == ["RuntimeError: no disk", "it was cancelled", "it ended"]
    assert [event["after_ms"] for event in logs] == [2, 4, 8]
    await task.stop()
    await task.stop()
    assert len(began) == 4
