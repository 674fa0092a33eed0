"""An audit of a real node: with `block` a slow one loses nothing and publishers wait; with `drop` it loses the oldest events and no
publisher waits.
"""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from godwit import testing
from godwit.audit import Audit, Event, LostEvent, MessageEvent
from godwit.client import Client

DEADLINE_S = 60
MESSAGES = 2_000


class Slow(Audit):
    def __init__(self) -> None:
        self.open = threading.Event()
        self.sequences: list[int] = []
        self.lost = 0

    async def take(self, events: Sequence[Event]) -> None:
        await asyncio.to_thread(self.open.wait, DEADLINE_S)
        for event in events:
            if isinstance(event, MessageEvent) and event.position and event.subject == "/a":
                self.sequences.append(int(event.position.split(".")[1]))
            elif isinstance(event, LostEvent):
                self.lost += event.count


@pytest.mark.parametrize("overflow", ["drop", "block"])
async def test_a_slow_audit_never_slows_delivery(overflow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    monkeypatch.setattr("tests.integration.test_audit.SLOW", slow, raising=False)
    audit = {"plugins": [f"{__name__}:SLOW"], "queue_events_max": 100, "batch_ms": 10, "overflow": overflow}
    async with testing.node({"audit": audit}) as node, asyncio.timeout(DEADLINE_S):
        async with Client(node.url) as client, Client(node.url) as reader:
            subscription = reader.subscribe("/a", last=MESSAGES)
            await subscription.joined()
            publishing = asyncio.gather(*(client.publish("/a", number) for number in range(MESSAGES)))
            if overflow == "drop":
                await publishing
                assert [(await anext(subscription)).json() for _ in range(MESSAGES)] == list(range(MESSAGES))
            else:
                assert (await anext(subscription)).json() == 0
            slow.open.set()
            await publishing
        await node.node.audits.stop()
    if overflow == "block":
        assert slow.sequences == list(range(1, MESSAGES + 1)) and slow.lost == 0
    else:
        assert slow.lost > 0 and slow.lost + len(slow.sequences) >= MESSAGES
        assert slow.sequences == sorted(slow.sequences) and slow.sequences[-1] == MESSAGES
