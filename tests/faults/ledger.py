"""Compares what was published with what each subscriber received.

A `Ledger` keeps every acknowledged publish by subject and sequence. A `Reader` follows one subscription and holds it to the
contract: no message missing without a gap, no duplicate, and the content that was acknowledged at each position.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from godwit.client import Gap, Item, Message, Position, Published


class Ledger:
    """Acknowledged publishes. Sequences of a subject must come out as 1, 2, 3, … with nothing twice."""

    def __init__(self) -> None:
        self.contents: dict[str, dict[int, Any]] = {}
        self.repeats = 0
        self._changed = asyncio.Condition()

    async def write(self, subject: str, content: Any, published: Published) -> None:
        assert published.position is not None
        kept = self.contents.setdefault(subject, {})
        sequence = published.position.sequence
        assert sequence not in kept, f"{subject} {sequence} was given to {kept[sequence]} and to {content}"
        kept[sequence] = content
        self.repeats += published.is_duplicate
        await self.notify()

    async def notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def wait(self) -> None:
        """Until something is written, or `notify` is called."""
        async with self._changed:
            await self._changed.wait()

    @property
    def total(self) -> int:
        return sum(map(len, self.contents.values()))

    def heads(self) -> dict[str, int]:
        return {subject: len(kept) for subject, kept in self.contents.items()}

    def check(self) -> None:
        """Every number was given once: a publish that was tried again did not become a second message."""
        for subject, kept in self.contents.items():
            assert sorted(kept) == list(range(1, len(kept) + 1)), f"{subject} has holes: something was numbered twice"
        counts = Counter(repr(content) for kept in self.contents.values() for content in kept.values())
        assert not counts or max(counts.values()) == 1, "the same publish was numbered twice"


class Reader:
    """What one subscription was given, checked as it comes."""

    def __init__(self, name: str, ledger: Ledger, is_conflated: bool = False) -> None:
        self.name, self._ledger, self._is_conflated = name, ledger, is_conflated
        self.stands: dict[str, Position] = {}
        self.received: dict[str, dict[int, Any]] = {}
        self.gaps: list[Gap] = []
        self._missed: Counter[str] = Counter()
        self._lived: Counter[str] = Counter()  # messages that were no snapshot
        self.moved = asyncio.Event()

    def take(self, item: Item) -> None:
        if isinstance(item, Message):
            self._message(item)
        elif isinstance(item, Gap):
            self._gap(item)
        self.moved.set()

    def _message(self, message: Message) -> None:
        at, stand = message.position, self.stands.get(message.subject)
        assert at is not None
        where = f"{self.name}: {message.subject} {at} after {stand}"
        after = message.after or Position(at.epoch, at.sequence - 1)
        if not message.is_snapshot:
            self._lived[message.subject] += message.conflated or 1
            expected = stand or (after if self.gaps else Position(at.epoch, 0))
            if self._is_conflated:
                assert after.sequence <= expected.sequence < at.sequence, f"{where} hole or repeat"
            else:
                assert (after, at.sequence) == (expected, expected.sequence + 1), f"{where} hole or repeat"
        self.received.setdefault(message.subject, {})[at.sequence] = message.json()
        self.stands[message.subject] = at

    def _gap(self, gap: Gap) -> None:
        self.gaps.append(gap)
        if gap.position is None:  # of a whole pattern: its subjects begin anew
            self.stands.clear()
        else:
            stand = self.stands.get(gap.subject)
            assert gap.after == stand, f"{self.name}: {gap} for one who stands at {stand}"
            assert gap.missed == gap.position.sequence - (stand.sequence if stand else 0), f"{self.name}: {gap}"
            self.stands[gap.subject] = gap.position
            self._missed[gap.subject] += gap.missed

    @property
    def missed(self) -> int:
        return self._missed.total()

    @property
    def progress(self) -> int:
        return sum(stand.sequence for stand in self.stands.values())

    def is_at(self, heads: dict[str, int]) -> bool:
        return all(subject in self.stands and self.stands[subject].sequence >= head for subject, head in heads.items())

    async def reach(self, heads: dict[str, int]) -> None:
        while not self.is_at(heads):
            self.moved.clear()
            await self.moved.wait()

    def check(self, heads: dict[str, int]) -> None:
        """Everything that was acknowledged arrived once, with its content, or was reported as missing."""
        for subject, head in heads.items():
            received, acknowledged = self.received.get(subject, {}), self._ledger.contents[subject]
            wrong = {n: content for n, content in received.items() if acknowledged.get(n) != content}
            assert not wrong, f"{self.name}: {subject} has other contents than were acknowledged: {wrong}"
            counted = (self._lived[subject], self._missed[subject])
            assert self._is_conflated or sum(counted) == head, (
                f"{self.name}: {subject} has {head}, received or was notified of {counted}"
            )
