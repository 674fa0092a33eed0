"""What was published, and what a resuming subscription may receive of it. Nothing here is the node's own code."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any


class History:
    """The published contents by subject and sequence, as acknowledged to the publisher."""

    def __init__(self) -> None:
        self.contents: dict[str, dict[int, int]] = {}
        self.heads: dict[str, int] = {}
        self.moved = asyncio.Event()

    def write(self, subject: str, at: str, number: int) -> None:
        sequence = _sequence(at)
        self.contents.setdefault(subject, {})[sequence] = number
        self.heads[subject] = max(sequence, self.heads.get(subject, 0))


@dataclass
class View:
    """What one subscription has received. `whole`: every message, or a gap with the number of missing ones."""

    name: str
    history: History
    whole: bool
    stands: dict[str, int] = field(default_factory=dict)
    frames: int = 0
    unsure: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    def take(self, said: dict[str, Any]) -> None:
        self.history.moved.set()
        if "message" in said:
            self.frames += 1
            self._take_message(said["message"], said)
        elif "gap" in said and said.get("at"):
            self._take_gap(said["gap"], said)
        elif "gap" in said:
            self.faults.append(f"{self.name}: a gap of the whole pattern: {said}")

    def resume(self) -> None:
        """The next connection begins; a resume token may be older than the last received message."""
        self.unsure = set(self.stands)

    def _take_message(self, subject: str, said: dict[str, Any]) -> None:
        at, stand = _sequence(said["at"]), self.stands.get(subject, 0)
        number = self.history.contents.get(subject, {}).get(at)
        if number is not None and said["content"]["n"] != number:
            self.faults.append(f"{self.name}: {subject} {at} is {number}, not {said['content']['n']}")
        is_unsure = subject in self.unsure
        if is_unsure and at <= stand:
            return  # a client drops by its position what comes again
        self.unsure.discard(subject)
        if not said.get("snapshot"):
            after = _sequence(said["after"]) if "after" in said else at - 1
            may_reach_back = is_unsure and not self.whole
            if (self.whole and stand and after != stand) or at <= stand or (after < stand and not may_reach_back):
                self.faults.append(f"{self.name}: {subject} at {stand} was sent {after} to {at}")
        self.stands[subject] = max(stand, at)

    def _take_gap(self, subject: str, said: dict[str, Any]) -> None:
        at, stand = _sequence(said["at"]), self.stands.get(subject, 0)
        after = _sequence(said["after"]) if "after" in said else 0
        is_unsure = subject in self.unsure
        if is_unsure and at <= stand:
            return
        self.unsure.discard(subject)
        is_wrong = after > stand or (after < stand and "after" in said and not is_unsure)
        if said["reason"] != "overrun" or at <= stand or said["missed"] not in {at - after, None} or is_wrong:
            self.faults.append(f"{self.name}: {subject} at {stand} received {said}")
        self.stands[subject] = max(stand, at)

    def count_behind(self) -> int:
        """The number of messages between its position and the heads."""
        heads = self.history.heads
        return sum(max(head - self.stands.get(subject, 0), 0) for subject, head in heads.items() if self._has(subject))

    def _has(self, subject: str) -> bool:
        selector = self.name.split()[1]
        return subject == selector or (selector.endswith("**") and subject.startswith(selector[:-2]))


def _sequence(at: str) -> int:
    return int(at.partition(".")[2])
