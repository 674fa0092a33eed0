"""What can be found: a promise, and a breach of it by a broker, with the shortest history that shows it.

Promises are worded here once, for the table, the JSON and the page. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Promise(StrEnum):
    """What a broker is held to. A broker that never promised something is not judged by it, and the report says so."""

    NO_LOSS = "no loss"
    NO_REPEAT = "no repeat"
    ORDER = "order"
    CONTENT = "content"
    ONCE = "once"
    GAPS = "gaps"
    MERGE = "merge"
    RUN = "run"
    FRESH = "fresh"
    MEMORY = "memory"
    ALIVE = "alive"


SENTENCES = {
    Promise.NO_LOSS: "Every acknowledged message reached every subscriber, or the subscriber was told that it could not.",
    Promise.NO_REPEAT: "Nothing was given twice, save what a resume from a resume token may bring again.",
    Promise.ORDER: "Messages came in the order in which they were accepted.",
    Promise.CONTENT: "Everything that came is what somebody had published, byte for byte.",
    Promise.ONCE: "A publish that was tried again became one message.",
    Promise.GAPS: "Each gap had a cause, began where the subscriber stood, and its count was exact.",
    Promise.MERGE: "Conflated messages and snapshots held the latest value of each field, and the right count.",
    Promise.RUN: "A restart was told to everyone before the first message that followed it.",
    Promise.FRESH: "Whoever joined was given everything that had been acknowledged before.",
    Promise.MEMORY: "The memory of the node stayed below the limit that was stated before.",
    Promise.ALIVE: "Everyone came back after each fault, and came to the end.",
}


@dataclass(frozen=True, slots=True)
class Breach:
    """A promise that was broken, and how, in one sentence."""

    promise: Promise
    sentence: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A breach with its circumstances. `history` is the shortest run of what was seen that shows it, oldest first."""

    promise: Promise
    sentence: str
    who: str
    subject: str
    at_ms: int
    history: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        return {
            "promise": self.promise.value,
            "sentence": self.sentence,
            "who": self.who,
            "subject": self.subject,
            "at_ms": self.at_ms,
            "history": self.history,
        }


class Findings:
    """All that was found: the first few in full, the rest counted, so that a broken broker cannot fill the memory."""

    def __init__(self, kept_max: int = 50) -> None:
        self._kept_max = kept_max
        self.kept: list[Finding] = []
        self.counts: dict[Promise, int] = {}

    def add(self, finding: Finding) -> None:
        seen = self.counts.get(finding.promise, 0)
        self.counts[finding.promise] = seen + 1
        if len(self.kept) < self._kept_max or seen == 0:
            self.kept.append(finding)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def shortest(self) -> Finding | None:
        """The one that is easiest to read: the fewest lines of history, the earliest of these."""
        return min(self.kept, key=lambda finding: (len(finding.history) or 99, finding.at_ms), default=None)
