"""The guarantees, and violations of them with the shortest history that shows each. The sentences here are used by the
table, the JSON and the page. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Guarantee(StrEnum):
    """The guarantees. A broker is judged only by those it gives; the report names the others."""

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
    Guarantee.NO_LOSS: "Every acknowledged message reached every subscriber, or the subscriber received a gap.",
    Guarantee.NO_REPEAT: "Nothing was delivered twice, except what a resume by token may repeat.",
    Guarantee.ORDER: "Messages arrived in the order of acceptance, also across the subjects of a pattern.",
    Guarantee.CONTENT: "Everything received was published, byte for byte, and not refused.",
    Guarantee.ONCE: "A repeated publish became one message.",
    Guarantee.GAPS: "Each gap had a cause, began at the subscriber's position, and its count was exact.",
    Guarantee.MERGE: "Conflated messages and snapshots held the latest value of each field, and the right count.",
    Guarantee.RUN: "Every subscriber was notified of a restart before the first message after it.",
    Guarantee.FRESH: "A new subscriber received everything that was acknowledged before.",
    Guarantee.MEMORY: "The memory of the node stayed below the sum of its limits.",
    Guarantee.ALIVE: "Every client reconnected after each fault and reached the end.",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken guarantee, with a sentence that describes how."""

    guarantee: Guarantee
    sentence: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation with its circumstances. `history` is the shortest list of events that shows it, oldest first."""

    guarantee: Guarantee
    sentence: str
    who: str
    subject: str
    at_ms: int
    history: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        return {
            "guarantee": self.guarantee.value,
            "sentence": self.sentence,
            "who": self.who,
            "subject": self.subject,
            "at_ms": self.at_ms,
            "history": self.history,
        }


class Findings:
    """All findings: the first few in full, the others counted, to bound the memory."""

    def __init__(self, kept_max: int = 50) -> None:
        self._kept_max = kept_max
        self.kept: list[Finding] = []
        self.counts: dict[Guarantee, int] = {}

    def add(self, finding: Finding) -> None:
        seen = self.counts.get(finding.guarantee, 0)
        self.counts[finding.guarantee] = seen + 1
        if len(self.kept) < self._kept_max or seen == 0:
            self.kept.append(finding)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def shortest(self) -> Finding | None:
        """The finding that is easiest to read: the one with the fewest lines of history, and of these the earliest."""
        return min(self.kept, key=lambda finding: (len(finding.history) or 99, finding.at_ms), default=None)
