"""Publishers that wait for the disk and subscribers that resume, over plain WebSockets: received messages must follow the
earlier ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidMessage

from tests.raw_client import RawClient, raw_client
from tests.trials.mqtt import RETRY_S


@asynccontextmanager
async def reach(url: str) -> AsyncIterator[RawClient]:
    """A client of a node that may be killed at any time, also during the handshake: that, and nothing else, is a ConnectionError."""
    try:
        async with raw_client(url) as client:
            yield client
    except InvalidMessage as invalid:
        if not isinstance(invalid.__cause__, EOFError):
            raise
        raise ConnectionError("the node was gone before it answered") from invalid
    except ConnectionClosed as closed:
        if closed.rcvd is not None:
            raise
        raise ConnectionError("the node was gone") from closed


async def publish_to_disk(url: str, subject: str, acknowledged: list[int]) -> None:
    """Publishes numbers with `ack: disk`; those that were acknowledged are added, the others are not sent again."""
    number = 0
    while True:
        try:
            async with reach(url) as client:
                while True:
                    number += 1
                    answer = await client.ask({"id": 1, "publish": subject, "content": number, "ack": "disk"})
                    assert answer.get("ok") == "published" and "ack" not in answer, answer
                    acknowledged.append(number)
                    await asyncio.sleep(0.02)  # the trial is about the node, not about this program
        except (OSError, ConnectionError, EOFError):
            await asyncio.sleep(RETRY_S)


@dataclass
class Follower:
    """One subscription that is resumed by position, or a pattern by resume token, after each end of its connection."""

    url: str
    selector: str
    got: dict[str, list[int]] = field(default_factory=dict)
    stands: dict[str, str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    token: str | None = None
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        while True:
            try:
                async with reach(self.url) as client:
                    await client.send(self._command())
                    async for said in client.rest():
                        self._take(said)
            except (OSError, ConnectionError, EOFError):
                pass
            await asyncio.sleep(RETRY_S)

    def _command(self) -> dict[str, Any]:
        command: dict[str, Any] = {"id": 1, "subscribe": self.selector, "snapshot": False, "on_gap": "oldest"}
        if not self.is_pattern and self.selector in self.stands:
            command["after"] = self.stands[self.selector]
        if self.is_pattern and self.token is not None:
            command["since"] = self.token
            command["after"] = self.stands
        return command

    @property
    def is_pattern(self) -> bool:
        return self.selector.endswith("*")

    def _take(self, said: dict[str, Any]) -> None:
        self.moved.set()
        if "resume_token" in said:
            self.token = said["resume_token"]
        elif "gap" in said:
            self._take_gap(said)
        elif "message" in said and not said.get("snapshot"):
            self._take_message(said["message"], said)

    def _take_gap(self, said: dict[str, Any]) -> None:
        self.faults.append(f"{self.selector}: a gap, with {self.stands}: {said}")

    def _take_message(self, subject: str, said: dict[str, Any]) -> None:
        at, stand = said["at"], self.stands.get(subject)
        epoch, _, sequence = at.partition(".")
        after = said.get("after", f"{epoch}.{int(sequence) - 1}")
        if stand is not None and after != stand:
            self.faults.append(f"{self.selector}: {subject} at {stand} was sent {at} after {after}")
        self.stands[subject] = at
        self.got.setdefault(subject, []).append(said["content"])

    def missing(self, acknowledged: dict[str, list[int]]) -> list[Any]:
        """Numbers that were acknowledged after the first that it got, and that it did not get."""
        missing: list[Any] = []
        for subject, numbers in acknowledged.items():
            if self.is_pattern or subject == self.selector:
                got = self.got.get(subject, [])
                has = set(got)
                missing += [(self.selector, subject, n) for n in numbers if n > min(has, default=0) and n not in has]
                if sorted(has) != got:
                    self.faults.append(f"{self.selector}: {subject} came out of order or twice")
        return missing
