"""What all checkers of a run share: what the broker is held to, the expected history, what was found; and what each counts."""

from __future__ import annotations

from dataclasses import dataclass

from .expected_history import ExpectedHistory
from .finding import Findings, Guarantee
from .merging import Merging


@dataclass(frozen=True, slots=True)
class Rules:
    """What is known of the broker: its guarantees, and the limits that may cause a gap (None: not known here)."""

    guarantees: frozenset[Guarantee] = frozenset(Guarantee)
    log_messages_max: int | None = None
    log_age_ms_max: int | None = None
    in_flight_max: int = 0
    """So many publishes may be in the log and not yet in the expected history."""
    has_snapshots: bool = True
    """A newcomer is given the subject's state, so that a first message can be held against it."""
    knows_restarts: bool = False
    """Whoever runs the check restarts the node itself, so that a gap for a restart can be held against it."""
    keeps_journal: bool = False
    """A restart goes on from a journal: a new run follows what it holds of the one before (6.7)."""


@dataclass(slots=True)
class CheckContext:
    """What all checkers of a run share."""

    expected: ExpectedHistory
    merging: Merging
    findings: Findings
    rules: Rules
    restarts: int = 0
    is_clock_moved: bool = False
    """The node's wall clock jumped: over a restart the ages of messages go by it, so that they may look older than they are."""


@dataclass(slots=True)
class Counts:
    """What one checker was told."""

    messages: int = 0
    snapshots: int = 0
    again: int = 0
    conflated: int = 0
    gaps: int = 0
    missed: int = 0
    gaps_uncounted: int = 0
    joins: int = 0
    resumes: int = 0
    losses: int = 0  # connections
