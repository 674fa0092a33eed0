"""The journal that dispatch writes: on the disk when a write returns, and one process at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.engine import check_journal
from godwit.rows.feedback import FeedbackJournal, FeedbackRow, JournalFailed


def test_rows_that_were_written_are_on_the_disk(tmp_path: Path) -> None:
    journal = FeedbackJournal(tmp_path, "a", age_ms_max=0, bytes_max=0)
    row = FeedbackRow("t", 1, "evt_1.0", "n", "ann", "", "inbox", "sent", 1, None, None, None, None, None, False)
    journal.write([row, row._replace(event="evt_1.1", reason="x", accepted_ms=1, provider="p", segments=2)])
    assert [file["rows"] for file in check_journal(tmp_path) if file["stream"] == "feedback"] == [2]
    journal.close()
    journal.close()


def test_a_journal_in_use_is_refused(tmp_path: Path) -> None:
    first = FeedbackJournal(tmp_path, "a", age_ms_max=0, bytes_max=0)
    with pytest.raises(JournalFailed, match="another node"):
        FeedbackJournal(tmp_path, "a", age_ms_max=0, bytes_max=0)
    first.close()
    with pytest.raises(JournalFailed, match="closed"):
        first.write([])
