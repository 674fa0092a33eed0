"""Every command and every job under hostile conditions: a sentence and an exit code, never a traceback, never silence.

The commands are those of the parser and the jobs those that are declared: one without words here fails. All run as processes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from godwit_pipelines.cli import main
from godwit_pipelines.errors import EXIT_PIPE_CLOSED, DiskFailed
from godwit_pipelines.jobs import JOBS
from tests.pipelines.journals import JournalWriter, message

DEADLINE_S = 600
LOCALE = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m[red]\u202egnp.exe\u2066[/x]é"
"""Control sequences of both kinds, markup of the printer, bidirectional overrides, and a letter that is not ASCII."""
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

WORDS: dict[str, tuple[str, ...]] = {
    "list": (),
    "settings": (),
    "show": ("bronze.messages", "--lake", "{lake}"),
    "report": ("--lake", "{lake}", "--page", "{new}"),
    **{f"run {name}": (*(("--journal", "{data}") if job.needs_journals else ()), "--lake", "{lake}", "--set", "spark.master=local[1]")
       for name, job in JOBS.items() if name not in ("all", "replay")},
    "run all": ("--once", "--journal", "{data}", "--lake", "{lake}", "--set", "spark.master=local[1]"),
}  # fmt: skip
"""Command → arguments with which it succeeds."""
WAITING = {"cluster", "run replay"}
"""Goes on until it is stopped, or needs a node: tests of their own."""
QUIET = {"report", "run all", *(f"run {name}" for name, job in JOBS.items() if job.kind == "stream")}
"""May have nothing to say on its standard output: what it does goes to the standard error."""
ALL = [pytest.param(name, marks=[pytest.mark.long] if name.startswith("run") else []) for name in WORDS]


def leaves(command: click.Command, name: str = "") -> Iterator[str]:
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for each in command.list_commands(context):
                found = command.get_command(context, each)
                assert found is not None
                yield from leaves(found, f"{name} {each}".strip())
    elif name == "run":
        yield from (f"run {job}" for job in JOBS)
    else:
        yield name


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal whose publisher means ill, and a lake that it has landed in."""
    folder = tmp_path_factory.mktemp("whole")
    writer = JournalWriter(folder / "node", node="a")
    hostile = {"subject": f"/{HOSTILE}", "content": HOSTILE.encode(), "publisher": HOSTILE}
    writer.write([message(offset, **(hostile if offset % 2 else {})) for offset in range(20)])
    writer.seal()
    landed = call(words_of("run land", folder), stdout=subprocess.PIPE)
    assert landed.returncode == 0, landed
    return folder


@pytest.fixture
def place(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "place")


def words_of(name: str, place: Path) -> list[str]:
    names = {"lake": place / "lake", "data": place / "node", "new": place / "new.html"}
    return [*name.split(), *(word.format(**names) for word in WORDS[name])]


def call(
    words: list[str], *, stdout: int, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(
        [sys.executable, "-m", "godwit_pipelines", *words], stdin=subprocess.DEVNULL, stdout=stdout,
        stderr=subprocess.PIPE, env={**os.environ, **(environment or {})}, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr, done.stderr.decode()
    return done


def test_every_command_and_job_is_tried() -> None:
    assert {*leaves(main)} == {*WORDS} | WAITING


@pytest.mark.parametrize("name", ALL)
def test_a_full_device_is_a_sentence(name: str, place: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = call(words_of(name, place), stdout=full.fileno())
    assert done.returncode == DiskFailed.exit_code or (name in QUIET and done.returncode == 0), done
    assert done.returncode == 0 or b"No space left on device" in done.stderr.splitlines()[-1], done


@pytest.mark.parametrize("name", ALL)
def test_a_reader_that_has_left_ends_it_with_its_code(name: str, place: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = call(words_of(name, place), stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == EXIT_PIPE_CLOSED or (name in QUIET and done.returncode == 0), done


@pytest.mark.parametrize("name", ALL)
def test_a_locale_of_ascii_shows_everything_and_no_control_sequence(name: str, place: Path) -> None:
    done = call(words_of(name, place), stdout=subprocess.PIPE, environment=LOCALE)
    assert done.returncode in (0, 1), done  # 1: what was looked for was found
    for output in (done.stdout, done.stderr):
        assert not CONTROLS.search(output.decode("utf-8")), output


@pytest.mark.parametrize("name", [*WORDS, *sorted(WAITING)])
def test_words_that_cannot_be_are_refused_with_2(name: str) -> None:
    for words in (["--nothing"], ["\udcff", "\udcff"], ["--set", "nothing=1"], [HOSTILE, HOSTILE], [f"--{HOSTILE}"]):
        if words[0] == "--set" and not name.startswith("run"):
            continue
        done = call([*name.split(), *words], stdout=subprocess.PIPE)
        assert done.returncode in (2, 4) and done.stderr.strip(), (words, done)
        assert not CONTROLS.search(done.stderr.decode("utf-8")), done


def test_exact_output_stays_exact(place: Path) -> None:
    """Into a pipe the bytes of a message are as they were published, and each line is JSON."""
    done = call([*words_of("show", place), "--json"], stdout=subprocess.PIPE, environment=LOCALE)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert {row["subject"] for row in rows if row["subject"].startswith("/\x1b")} == {f"/{HOSTILE}"}
    assert {row["publisher"] for row in rows} == {HOSTILE, "thermometer"}
