"""The events of one client for the timeline: connections, gaps, stalls and violations. Pure. Beyond a number of events only
their count is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

EVENTS_MAX = 2_000


@dataclass(slots=True)
class Trace:
    """`ups` are the spans [from, to] in ms in which it was connected; the last may be open (`to` is None)."""

    ups: list[list[int | None]] = field(default_factory=list)
    gaps: list[tuple[int, int | None]] = field(default_factory=list)  # when, how many
    stalls: list[tuple[int, int]] = field(default_factory=list)
    events_left_out: int = 0

    def up(self, at_ms: int) -> None:
        if len(self.ups) < EVENTS_MAX:
            self.ups.append([at_ms, None])
        else:
            self.events_left_out += 1

    def down(self, at_ms: int) -> None:
        if self.ups and self.ups[-1][1] is None:
            self.ups[-1][1] = at_ms

    def gap(self, at_ms: int, missed: int | None) -> None:
        if len(self.gaps) < EVENTS_MAX:
            self.gaps.append((at_ms, missed))
        else:
            self.events_left_out += 1

    def to_json(self) -> dict[str, object]:
        return {"up": self.ups, "gaps": self.gaps, "stalls": self.stalls, "left_out": self.events_left_out}
