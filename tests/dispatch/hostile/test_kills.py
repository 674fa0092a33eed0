"""`kill -9` at random moments of sending over webhooks and e-mail, judged by what the other side was sent.

A kill leaves in doubt what was in flight, and what was sent since the last tick stored outcomes. In one tick no more starts than there
are slots, so both together are at most twice the slots: a bound that no clock decides.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.dispatch.conftest import Running
from tests.dispatch.test_process import served
from tests.dispatch.test_webhook import endpoint, put_webhook

DEADLINE_S = 120
CHANNELS = ("webhook", "email")
SENDS = 40
"""Notifications that are sent before each kill."""
SLOTS = 8
"""For each channel."""
RECENT_S = 0.2
Delivery = tuple[str, str]
"""Channel and notification."""


@dataclass
class Log:
    """What arrived, in order: the delivery, in which run, when, and whether it said that it may be a second one."""

    rows: list[tuple[Delivery, int, float, bool]] = field(default_factory=list)
    kills: list[float] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, delivery: Delivery, is_flagged: bool) -> None:
        self.rows.append((delivery, len(self.kills), time.monotonic(), is_flagged))
        self.changed.set()

    async def take_event(self, request: web.Request) -> web.Response:
        event = await request.json()
        self.note(("webhook", event["data"]["notification"]), event.get("possibleduplicate", False))
        return web.Response()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.original_content, bytes)
        self.note(("email", message_from_bytes(envelope.original_content)["Subject"]), False)
        return "250 2.0.0 taken"

    def count_repeated(self) -> Counter[int]:
        """By kill: arrivals of the run before it that came again after it."""
        last = {delivery: run for delivery, run, _, _ in self.rows}
        return Counter(run for delivery, run, _, _ in self.rows if last[delivery] > run)

    def count_recent(self) -> Counter[int]:
        """By kill: what arrived in the last moment before it."""
        return Counter(run for _, run, at, _ in self.rows if run < len(self.kills) and at > self.kills[run] - RECENT_S)


@asynccontextmanager
async def relay(log: Log) -> AsyncIterator[str]:
    """A mail server that takes everything."""
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: SMTP(log, hostname="mx.test", loop=loop), "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    finally:
        listening.close()
        await listening.wait_closed()


async def post(both: Running, name: str, names: list[str]) -> None:
    body = {"to": {"receiver": "ann"}, "content": {"title": name}}
    try:
        status, _ = await both.api("PUT", f"/v1/notifications/{name}", body)
    except aiohttp.ClientError:
        return  # killed before it answered: accepted or not, nobody was promised anything
    if status == 202:
        names.append(name)


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.long)])
async def test_kill_9_loses_nothing_and_every_duplicate_is_flagged(tmp_path: Path, kills: int) -> None:
    log, names, chance = Log(), list[str](), random.Random(1)
    async with relay(log) as mx, endpoint(log.take_event) as url:
        more = {
            "dispatch_email.relay": mx,
            "dispatch_email.security": "none",
            "dispatch_email.sender": "news@shop.example",
            "dispatch_email.sends_max": SLOTS,
            "dispatch_limits.webhook_sends_max": SLOTS,
        }
        for number in range(kills):
            async with asyncio.timeout(DEADLINE_S), served(tmp_path, more=more) as (process, both):
                await put_webhook(both, url)
                address = {"channel": "email", "value": "ann@mail.example"}
                assert (await both.api("PUT", "/v1/receivers/ann/addresses/mail", address))[0] == 200
                until = len(log.rows) + chance.randrange(SENDS)
                sends = [asyncio.create_task(post(both, f"n{number}-{one}", names)) for one in range(SENDS)]
                while len(log.rows) < until:
                    log.changed.clear()
                    await log.changed.wait()
                process.kill()
                log.kills.append(time.monotonic())
                await asyncio.gather(*sends)
        flagged: set[Delivery] = set()
        async with asyncio.timeout(DEADLINE_S), served(tmp_path, more=more) as (_, both):
            for name in names:
                while (await both.api("GET", f"/v1/notifications/{name}"))[1]["state"] != "settled":
                    pass
                _, answer = await both.api("GET", f"/v1/notifications/{name}/deliveries")
                rows = {row["channel"]: row for row in answer["deliveries"]}
                assert {rows[channel]["state"] for channel in CHANNELS} == {"sent"}, name
                flagged |= {(channel, name) for channel in CHANNELS if rows[channel]["possible_duplicate"]}
    check(log, names, flagged)


def check(log: Log, names: list[str], flagged: set[Delivery]) -> None:
    """Nothing is lost; what came twice says so; and no kill repeats or flags more than it can have left in doubt."""
    counts, plain = Counter(row[0] for row in log.rows), Counter(row[0] for row in log.rows if not row[3])
    repeated, recent = log.count_repeated(), log.count_recent()
    by_channel: defaultdict[str, int] = defaultdict(int)
    for (channel, name), count in counts.items():
        by_channel[channel] += count - 1
        assert count == 1 or (channel, name) in flagged or name not in names, (channel, name)
        assert channel == "email" or plain[channel, name] <= 1, name
    kills = len(log.kills)
    designed = sum(repeated[kill] <= len(CHANNELS) * SLOTS + recent[kill] for kill in range(kills))
    print(
        f"{kills} kills, {len(names)} accepted, repeated {dict(by_channel)}, at most {max(repeated.values(), default=0)} a kill; "
        f"{len(flagged)} flagged; within slots and the last {RECENT_S} s: {designed} of {kills}"
    )
    assert len(names) >= kills and set(counts) >= {(channel, name) for channel in CHANNELS for name in names}
    bound = 2 * len(CHANNELS) * SLOTS
    assert max(repeated.values(), default=0) <= bound and len(flagged) <= 2 * bound * kills
