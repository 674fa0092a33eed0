"""The shared objects of a run's checkers: the broker's rules, the expected history and the findings; and the counts of each
checker.
"""

from __future__ import annotations

from dataclasses import dataclass

from .expected_history import ExpectedHistory
from .finding import Findings, Guarantee
from .merging import Merging


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a broker: its guarantees, and the limits that may cause a gap (None: unknown)."""

    guarantees: frozenset[Guarantee] = frozenset(Guarantee)
    log_messages_max: int | None = None
    log_age_ms_max: int | None = None
    in_flight_max: int = 0
    """How many publishes may be in the log and not yet in the expected history."""
    has_snapshots: bool = True
    """Whether a new subscriber receives the subject's state, so that its first message can be checked."""
    knows_restarts: bool = False
    """Whether the check itself restarts the node, so that a gap with the reason restart can be checked."""
    keeps_journal: bool = False
    """Whether a restart continues from a journal: then a new run follows the run before (6.7)."""


@dataclass(slots=True)
class CheckContext:
    """Shared by all checkers of a run."""

    expected: ExpectedHistory
    merging: Merging
    findings: Findings
    rules: Rules
    restarts: int = 0
    is_clock_moved: bool = False
    """Whether the node's wall clock was changed: after a restart, messages may then look older than they are."""


@dataclass(slots=True)
class Counts:
    """What one checker has received."""

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
