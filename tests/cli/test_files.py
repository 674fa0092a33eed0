"""Files that are not in the form that a command expects: an error that names the file, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NOT_JSON = {
    "empty": b"",
    "text": b"hello",
    "not UTF-8": b"\xff\xfe",
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "too deep": b"[" * 200_000 + b"]" * 200_000,
    "NaN": b'{"format": NaN, "segments": [NaN]}',
    "wrong types": b'{"format": 2, "segments": 7, "cores": "x"}',
    "huge": b'{"format": 2, "segments": [{"first": 0, "rows": 1, "bytes": 1, "time_min": 1e300, "time_max": 1e300}]}',
    "\\u001b": b'{"\x1b[2J": "\x1b[2J"}',
}
COMMANDS = {
    "journal show": "{folder}",
    "journal check": "{folder}",
    "plan": "--figures {file}",
    "token show": "{file}",
    "token make": "--issuer a --identity b --key {file}",
    "tail": "/a --count 1 --server ws://127.0.0.1:1 --positions {file}",
    "config show": "--config {file}",
    "config check": "--config {file}",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_is_something_else_is_named(name: str, tmp_path: Path) -> None:
    stream = tmp_path / "journal" / "messages"
    stream.mkdir(parents=True)
    file = stream / "manifest.json"
    words = [*name.split(), *(word.format(folder=tmp_path, file=file) for word in COMMANDS[name].split())]
    for what, content in NOT_JSON.items():
        file.write_bytes(content)
        if (name, what) in GOOD:
            continue
        done = subprocess.run([sys.executable, "-m", "godwit", *words], capture_output=True, timeout=20, check=False)
        assert done.returncode in (1, 2) and b"Traceback" not in done.stderr, (what, done.stderr.decode())
        said = done.stdout + done.stderr
        assert b"messages" in said or name == "token show" or b"no journal" in done.stderr, (what, done)
        assert b"\x1b" not in said


@pytest.mark.parametrize("path", ["/", ""])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_path_that_is_no_file_is_a_sentence(name: str, path: str, tmp_path: Path) -> None:
    words = [*name.split(), *(word.format(folder=path, file=path) for word in COMMANDS[name].split())]
    done = subprocess.run(
        [sys.executable, "-m", "godwit", *words], capture_output=True, cwd=tmp_path, timeout=20, check=False
    )
    assert done.returncode in (1, 2) and b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.stderr.strip()


GOOD = {
    ("config show", "empty"),
    ("config check", "empty"),
    ("token make", "text"),  # secrets, as far as anybody can tell
    ("token make", "a list"),
    ("token make", "a number"),
    ("token make", "null"),
    ("token make", "too deep"),
    ("token make", "NaN"),
    ("token make", "wrong types"),
    ("token make", "huge"),
    ("token make", "not UTF-8"),
    ("token make", "\\u001b"),
    ("tail", "NaN"),  # objects: positions of other patterns than the one that is read
    ("tail", "wrong types"),
    ("tail", "huge"),
    ("tail", "\\u001b"),
}
