"""The command where its output goes nowhere, has no room, or cannot show a character: a sentence and the code of what happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from godwit_pipelines.terminal.commands import describe
from tests.pipelines.test_delta import write

COMMAND = f"{sys.executable} -m godwit_pipelines"
CLOSED = "godwit-pipelines: the reader of the output closed it before everything was written\n"
FULL = "godwit-pipelines: the output cannot be written: No space left on device\n"


def run(words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A line of a shell that gives the command's own code."""
    line = f"set -o pipefail; {COMMAND} {words}"
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, check=False, timeout=120, env={**os.environ, **environment}
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("list | true", 141, CLOSED),
        ("settings | true", 141, CLOSED),
        ("--help | true", 141, CLOSED),
        ("list > /dev/full", 6, FULL),
        ("settings > /dev/full", 6, FULL),
        ("--help > /dev/full", 6, FULL),
        ("settings >&-", 6, "godwit-pipelines: the output cannot be written: Bad file descriptor\n"),
        ("run nothing 2> /dev/full", 2, ""),
        ("nothing 2> /dev/full", 2, ""),
        ("run nothing 2>&-", 2, ""),
    ],
)
def test_output_that_nobody_takes_ends_in_a_sentence(words: str, code: int, said: str) -> None:
    done = run(words)
    assert (done.returncode, done.stderr.decode()) == (code, said)


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii:strict"},
    ],
)
def test_a_locale_without_a_character_shows_an_escape(tmp_path: Path, environment: dict[str, str]) -> None:
    write(tmp_path / "bronze" / "messages", range(2), subject="/ü/水/😀")
    for words in (f"show bronze.messages --lake {tmp_path}", "settings", "run nö", "run $'\\xff'"):
        done = run(words, **environment)
        assert done.returncode == (2 if "run" in words else 0) and b"Traceback" not in done.stderr, done.stderr
    lines = run(f"show bronze.messages --lake {tmp_path} --json", **environment).stdout.decode("utf-8").splitlines()
    assert {json.loads(line)["subject"] for line in lines} == {"/ü/水/😀"}


def test_what_nobody_expected_ends_with_its_sentence_after_the_trace_and_the_plan() -> None:
    for text in (
        "[STREAM_FAILED] batch 0 does not exist\n=== Streaming Query ===\nLogical Plan:\n+- Scan",
        "",
        "\n\nx\n",
    ):
        code, said = describe(RuntimeError(text))
        first = text.strip().split("\n")[0]
        assert code == 70 and said.splitlines()[-1] == f"godwit-pipelines: unexpected RuntimeError: {first}".rstrip(
            ": "
        )
