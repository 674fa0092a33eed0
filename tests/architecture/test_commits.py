"""A commit's subject is `component: what changed` in at most 72 characters, so that `git log --oneline` can be read.

Commits up to `SINCE` were made before this was checked. A copy without that commit (a shallow clone, an archive) has nothing to check.
"""

import re
import subprocess

import pytest

from tests.architecture.source import ROOT

SINCE = "2d6cc37e075e8272fd0157550085188fdff6b19a"
SUBJECT_MAX = 72
SUBJECT = re.compile(r"[a-z][\w.*/ -]*(?:, [\w.*/ -]+)*: \S")
MADE_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ")


def list_subjects() -> list[str] | None:
    """The subjects of the commits after `SINCE`; None: this copy does not have that commit."""
    command = ["git", "log", "--format=%s", f"{SINCE}..HEAD"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return listed.stdout.splitlines() if listed.returncode == 0 else None


def is_plain(subject: str) -> bool:
    return subject.startswith(MADE_BY_GIT) or (
        len(subject) <= SUBJECT_MAX and SUBJECT.match(subject) is not None and not subject.endswith(".")
    )


def test_every_commit_subject_names_its_component_and_is_short() -> None:
    subjects = list_subjects()
    if subjects is None:
        pytest.skip("this copy of the repository has no history back to the first commit that is checked")
    wrong = [subject for subject in subjects if not is_plain(subject)]
    assert not wrong, f"expected `component: what changed` in at most {SUBJECT_MAX} characters: reword with git rebase"


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("core: a full window sends a gap", True),
        ("core, limits: journal_readings_max is journal_reads_max", True),
        ("clients/python: docstrings name their errors", True),
        ('Revert "core: a full window sends a gap"', True),
        ("A full window sends a gap", False),
        ("core:", False),
        ("core: a full window sends a gap.", False),
        ("core: " + "x" * 67, False),
        ("core: " + "x" * 66, True),
    ],
)
def test_which_subjects_are_plain(subject: str, expected: bool) -> None:
    assert is_plain(subject) is expected
