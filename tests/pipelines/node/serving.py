"""A real node with a journal, and its answers, for end-to-end tests."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.pipelines.conftest import ROOT

START_S = 60.0


@contextmanager
def running_node(folder: Path, *words: str) -> Iterator[str]:
    """A node that writes its journal under `folder`/data; gives its address."""
    with node_process(folder, *words) as (url, _):
        yield url


@contextmanager
def node_process(folder: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The same with its process."""
    with node_at(folder, *words) as (addresses, process):
        yield f"http://{addresses['client']}", process


@contextmanager
def node_at(folder: Path, *words: str) -> Iterator[tuple[dict[str, str], subprocess.Popen[str]]]:
    """The same with all addresses at which it listens, HOST:PORT by name."""
    command = [str(ROOT / ".venv/bin/python"), "-m", "godwit", "serve", "--data", str(folder / "data")]
    command += ["--client", "127.0.0.1:0", "--admin", "127.0.0.1:0", *words]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("listening "):
                yield dict(word.split("=", 1) for word in line.split()[1:]), process
                break
        else:
            raise AssertionError((folder / "log").read_text())
    finally:
        process.terminate()
        process.wait(START_S)


def read_subject(url: str, subject: str, count: int = 1000) -> list[dict[str, Any]]:
    """The last of what the node keeps of a subject, the oldest first."""
    asked = f"{url}/v1/messages?subject={urllib.parse.quote(subject)}&last={count}&limit={count}"
    with urllib.request.urlopen(asked, timeout=30) as answer:
        rows: list[dict[str, Any]] = json.load(answer)
    return [row for row in rows if "message" in row]
