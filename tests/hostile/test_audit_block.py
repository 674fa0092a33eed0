"""An audit for which publishers wait receives every message, with any number of clients and any size of its queue."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from godwit import testing
from godwit.audit import AccessEvent, Audit, Event, LostEvent, MessageEvent
from godwit.client import Client
from tests.raw_client import raw_client
from tests.waiting import until

DEADLINE_S = 120
MESSAGES, GUESTS, PUBLISHERS = 4_000, 100, 8


class Slow(Audit):
    """Takes a batch at a time, and each only after a turn of its loop for each event."""

    def __init__(self) -> None:
        self.contents: list[bytes] = []
        self.lost_messages = self.lost_others = self.arrivals = self.departures = 0

    async def take(self, events: Sequence[Event]) -> None:
        for event in events:
            await asyncio.sleep(0)
            match event:
                case MessageEvent(content=bytes() as content):
                    self.contents.append(content)
                case LostEvent(kind="message"):
                    self.lost_messages += event.count
                case LostEvent():
                    self.lost_others += event.count
                case AccessEvent(what="connected"):
                    self.arrivals += 1
                case AccessEvent(what="disconnected"):
                    self.departures += 1
                case _:
                    pass


SLOW = Slow()


def make_settings(monkeypatch: pytest.MonkeyPatch, **audit: Any) -> tuple[dict[str, Any], Slow]:
    slow = Slow()
    monkeypatch.setattr(f"{__name__}.SLOW", slow)
    base = {"plugins": [f"{__name__}:SLOW"], "patterns": ["/a/**"], "overflow": "block", "with_content": True}
    base |= {"batch_ms": 10, "statistics_ms": 100, "stop_timeout_ms": 60_000}
    return {"audit": {**base, **audit}}, slow


async def come_and_go(url: str) -> None:
    async with raw_client(url) as guest:
        await guest.ask({"id": 1, "subscribe": "/other"})


@pytest.mark.parametrize(
    "bounds",
    [
        {"queue_events_max": 100},
        {"queue_events_max": 100, "batch_events_max": 7},
        {"queue_bytes_max": 65_536},
        {"queue_events_max": 100, "queue_bytes_max": 65_536, "batch_events_max": 100_000},
    ],
    ids=str,
)
async def test_no_accepted_message_is_missing_while_others_come_and_go(
    bounds: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, slow = make_settings(monkeypatch, **bounds)
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):

        async def publish(number: int) -> None:
            async with Client(node.url) as client:
                share = range(number, MESSAGES, PUBLISHERS)
                await asyncio.gather(*(client.publish(f"/a/{number}", one) for one in share))

        publishing = asyncio.gather(*(publish(number) for number in range(PUBLISHERS)))
        for _ in range(GUESTS):
            await come_and_go(f"ws://{node.client}")
        await publishing
        # only messages are waited for: with a small queue an arrival or departure may be lost, and is reported
        await until(lambda: slow.departures + slow.lost_others >= GUESTS)
        await node.node.audits.stop()
    assert sorted(map(int, slow.contents)) == list(range(MESSAGES))
    assert slow.lost_messages == 0 and slow.arrivals + slow.lost_others >= GUESTS


async def test_long_messages_of_many_publishers_at_once_are_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, slow = make_settings(monkeypatch, queue_bytes_max=65_536)
    publishers, content = 64, "x" * 50_000
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):

        async def publish(number: int) -> None:
            async with raw_client(f"ws://{node.client}") as client:
                for one in range(4):
                    await client.send({"publish": f"/a/{number}", "content": content, "id": one})
                for _ in range(4):
                    assert (await client.receive() or {}).get("ok") == "published"

        await asyncio.gather(*(publish(number) for number in range(publishers)))
        await node.node.audits.stop()
    assert len(slow.contents) == 4 * publishers and slow.lost_messages == 0
