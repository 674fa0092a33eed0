"""The driver of Centrifugo against a scripted server that follows its protocol document: it resumes at its position, answers
pings, and reports an unrecovered position as a gap. A test of the real program needs a machine on which it is installed.
"""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from godwit.model import Position
from godwit.verify.brokers.broker import SubscriberSetup
from godwit.verify.brokers.centrifugo import GUARANTEES, CentrifugoSubscriber
from godwit.verify.judge.checker import Checker
from godwit.verify.judge.content import Contents, Identity, Style
from godwit.verify.judge.context import CheckContext, Rules
from godwit.verify.judge.expected_history import ExpectedHistory
from godwit.verify.judge.finding import Findings
from godwit.verify.judge.merging import Merging
from godwit.verify.plan import Kind, SubscriberPlan
from godwit.verify.timing import start_clock
from godwit.verify.trace import Trace

SUBJECT = "/verify/a/0"
LAST = 9


def make_context() -> CheckContext:
    """One subject, with nine messages published and acknowledged."""
    expected = ExpectedHistory(Contents(1, 20), {SUBJECT: Style.TEXT})
    for number in range(1, LAST + 1):
        identity = Identity(1, number)
        expected.send(identity, SUBJECT, 0)
        expected.acknowledge(identity, Position(1, number))
    return CheckContext(expected, Merging(expected), Findings(), Rules(guarantees=GUARANTEES))


def publication(context: CheckContext, number: int) -> dict[str, Any]:
    content = Contents(1, 20).make(Identity(1, number), Style.TEXT)
    return {"data": base64.b64encode(content).decode(), "offset": number}


async def test_it_recovers_what_it_missed_and_takes_what_cannot_be_recovered_as_told(tmp_path: Path) -> None:
    context, clock = make_context(), start_clock()
    asked: list[dict[str, Any]] = []
    is_over = asyncio.Event()

    async def answer(socket: ServerConnection) -> None:
        commands = [json.loads(line) for line in str(await socket.recv()).splitlines()]
        asked.append(commands[1]["subscribe"])
        reply: dict[str, Any] = {"epoch": "e", "offset": 0}
        pushes = [1, 2]
        if len(asked) == 2:
            reply = {
                "epoch": "e",
                "offset": 4,
                "recovered": True,
                "publications": [publication(context, n) for n in (3, 4)],
            }
            pushes = [5]
        elif len(asked) == 3:
            reply, pushes = {"epoch": "e", "offset": 8, "was_recovering": True, "recovered": False}, [9]
        await socket.send(json.dumps({"id": 1, "connect": {}}) + "\n" + json.dumps({"id": 2, "subscribe": reply}))
        for number in pushes:
            await socket.send(json.dumps({"push": {"channel": "verify_a_0", "pub": publication(context, number)}}))
        await socket.send("{}")
        assert await socket.recv() == "{}"
        if len(asked) == 3:
            is_over.set()
            await socket.wait_closed()

    async with serve(answer, "127.0.0.1", 0) as server, asyncio.timeout(30):
        port = next(iter(server.sockets)).getsockname()[1]
        plan = SubscriberPlan("subject-1", Kind.SUBJECT, SUBJECT, "json")
        checker = Checker("subject-1", SUBJECT, context)
        subscriber = CentrifugoSubscriber(SubscriberSetup(plan, port, checker, Trace(), clock, tmp_path))
        running = asyncio.create_task(subscriber.run())
        await is_over.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    resumed = {"channel": "verify_a_0", "recover": True, "epoch": "e"}
    assert asked == [{"channel": "verify_a_0"}, {**resumed, "offset": 2}, {**resumed, "offset": 5}]
    assert (checker.counts.messages, checker.counts.gaps, checker.counts.missed) == (6, 1, 3)
    assert checker.is_at(context.expected.heads()) and not context.findings.total
