"""The journal that dispatch writes with the compiled engine, in the format of a node's journal."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import GodwitError


class FeedbackRow(NamedTuple):
    """One row of the table `feedback`, as protocol/events.toml declares it."""

    tenant: str
    time_ms: int
    event: str
    notification: str
    receiver: str
    address: str
    channel: str
    state: str
    attempt: int
    reason: str | None
    accepted_ms: int | None
    provider: str | None
    group_name: str | None
    category: str | None
    possible_duplicate: bool
    segments: int | None = None


class JournalFailed(GodwitError):
    """The disk refuses rows, or another process writes this journal."""


class FeedbackJournal:
    """Open from construction to `close`. `write` blocks until rows are on the disk."""

    def __init__(self, directory: Path, node: str, *, age_ms_max: int, bytes_max: int) -> None:
        """Begin a run; raises JournalFailed."""
        from .. import _engine

        run = secrets.randbits(63) | 1
        try:
            self._journal = _engine.FeedbackJournal(str(directory), node, run, age_ms_max, bytes_max)
        except OSError as error:
            raise JournalFailed(f"{directory}: {error}") from error

    def write(self, rows: Sequence[FeedbackRow]) -> None:
        """Write rows. After a JournalFailed some may be on the disk: write them again."""
        try:
            self._journal.write(list(rows))
        except OSError as error:
            raise JournalFailed(str(error)) from error

    def close(self) -> None:
        """End the run; a second call does nothing."""
        self._journal.close()
