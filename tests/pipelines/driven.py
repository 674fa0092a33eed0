"""Runs the command as users do, in a process of its own, for tests that kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from godwit_pipelines.cluster import die_with_parent
from tests.pipelines.conftest import ARCHIVE

PAUSE_S = 300


def start(*words: str, log: Path | None = None) -> subprocess.Popen[bytes]:
    """`godwit-pipelines` with these words, in a process group of its own: Java and the workers belong to it."""
    archive = ["--set", f"spark.class_archive={ARCHIVE}"] if ARCHIVE.exists() and words[0] == "run" else []
    with (log or Path(os.devnull)).open("ab") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "godwit_pipelines", *words, *archive],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
            preexec_fn=die_with_parent,  # Java sees that its standard input is closed
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """As by power loss: the command, Java and every worker at once."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(PAUSE_S)


def run(*words: str, log: Path | None = None) -> int:
    return start(*words, log=log).wait(PAUSE_S)
