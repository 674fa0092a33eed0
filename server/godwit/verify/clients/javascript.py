"""A subscriber through the JavaScript client: a Node.js process that writes everything it receives as JSON lines.

The program is javascript.mjs beside this file; it loads the client from the working copy's `clients/javascript`, or as
the installed package `godwit-client`. If it cannot run here, it is reported by name and left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from ...children import follow_parent, wait_for_end
from ...model import Gap, GapReason, Kind, Message, Outcome, Position
from ..judge.checker import Checker
from ..plan import SubscriberPlan
from ..reading import Reading
from ..timing import Clock
from ..trace import Trace

PROGRAM = Path(__file__).with_name("javascript.mjs")
LINE_BYTES_MAX = 4 << 20


def find_client() -> str | None:
    """What the program imports: the working copy's client with its package ws, or the installed one; None when there is no Node."""
    if shutil.which("node") is None:
        return None
    client = Path(__file__).resolve().parents[4] / "clients/javascript"
    if (client / "node_modules/ws").exists() and (client / "src/node.js").exists():
        return (client / "src/node.js").as_uri()
    return os.environ.get("GODWIT_JAVASCRIPT_CLIENT")


class JavascriptSubscriber(Reading[asyncio.Event]):
    """Run it as a task; cancel it to end. During a stall its program stops reading its subscription. To stop reading its
    output would not be enough, because pipes and buffers hold more than a stall's messages.
    """

    def __init__(self, mine: SubscriberPlan, url: str, checker: Checker, trace: Trace, clock: Clock) -> None:
        super().__init__(asyncio.Event())
        self.mine, self.checker, self.trace = mine, checker, trace
        self._url, self._clock = url, clock
        self._has_joined = False
        self._orders: asyncio.StreamWriter | None = None

    def stall(self, is_stalled: bool) -> None:
        has_changed = self._may_read.is_set() == is_stalled
        super().stall(is_stalled)
        if has_changed and self._orders is not None:
            self._orders.write(b"stall\n" if is_stalled else b"go\n")

    async def run(self) -> None:
        mine = self.mine
        asked = {
            "client": find_client(),
            "url": self._url,
            "selector": mine.selector,
            "onGap": mine.on_gap,
            "encoding": mine.encoding,
            "transport": mine.transport,
        }
        process = await asyncio.create_subprocess_exec(
            *("node", str(PROGRAM), json.dumps(asked)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_BYTES_MAX,
            preexec_fn=follow_parent(),
        )
        assert process.stdout is not None
        self.checker.asked(self._clock())
        self._orders = process.stdin
        if self._orders is not None and not self._may_read.is_set():
            self._orders.write(b"stall\n")
        try:
            while line := await process.stdout.readline():
                self._take(json.loads(line))
            self.trace.down(self._clock())
            self.checker.lost(self._clock(), f"the program ended with {await process.wait()}")
            await asyncio.Event().wait()  # it is found short of the head at the end
        finally:
            self._orders = None
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await wait_for_end(process)

    def _take(self, record: dict[str, Any]) -> None:
        now, checker = self._clock(), self.checker
        match record["is"]:
            case "message":
                checker.message(now, _message(record))
            case "gap":
                self.trace.gap(now, record["missed"])
                checker.gap(now, _gap(record))
            case "subscribed":
                self.trace.up(now)
                if self._has_joined:
                    checker.resumed(now)
                else:
                    self._has_joined = True
                    at = record["at"]
                    outcome = Outcome(record["outcome"]) if record["outcome"] else None
                    checker.joined(now, Position.parse(at) if at else None, outcome, record["count"])
            case "disconnected":
                self.trace.down(now)
                checker.lost(now, record["reason"])
            case "said":
                checker.said(now, record["words"])


def _message(record: dict[str, Any]) -> Message:
    return Message(
        record["subject"],
        bytes.fromhex(record["content"]),
        Kind(record["kind"]),
        Position.parse(record["at"]) if record["at"] else None,
        Position.parse(record["after"]) if record["after"] else None,
        pattern=record["pattern"],
        conflated=record["conflated"],
        is_snapshot=record["snapshot"],
    )


def _gap(record: dict[str, Any]) -> Gap:
    at, after = record["at"], record["after"]
    return Gap(
        record["subject"],
        Position.parse(at) if at else None,
        Position.parse(after) if after else None,
        GapReason(record["reason"]),
        record["missed"],
        record["pattern"],
    )
