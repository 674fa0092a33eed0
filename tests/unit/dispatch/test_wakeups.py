"""Hints: taken in turn, never twice, and waited for."""

import asyncio

from godwit.dispatch.wakeups import WakeUps


async def test_a_hint_waits_once_and_tenants_take_turns() -> None:
    hints = WakeUps()
    for tenant in ("a", "b", "a"):
        hints.add(tenant)
    assert [hints.take(), hints.take(), hints.take()] == ["a", "b", None]
    waiting = asyncio.create_task(hints.wait(60))
    await asyncio.sleep(0)
    hints.add("c")
    await waiting
    assert hints.take() == "c"
    await hints.wait(0)
