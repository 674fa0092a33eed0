"""The commands in the docs: each is accepted by the command line, and those that end by themselves are run."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from godwit_pipelines.cli import find_job, main, parse_options, read_config
from godwit_pipelines.jobs import JOBS
from godwit_pipelines.tables import TABLES
from tests.pipelines.conftest import ROOT
from tests.pipelines.driven import run
from tests.pipelines.jobs.played import Play

TEXTS = (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "pipelines/README.md")
COMMAND = re.compile(r"^ {4}(?:\S*/bin/)?godwit-pipelines ([a-z].*)$", re.MULTILINE)
ENDLESS = ("cluster", "7077", "kafka", "--every")
"""What goes on until it is stopped, or needs what other tests start."""


def list_commands() -> list[str]:
    """Each once, without what is said behind it."""
    found = (line for path in TEXTS for line in COMMAND.findall(path.read_text("utf-8")))
    return list(dict.fromkeys(re.split(r"\s{2,}|\s#", line)[0].strip() for line in found))


@pytest.mark.parametrize("line", list_commands())
def test_every_command_shown_is_one_that_is_taken(line: str) -> None:
    name, *words = shlex.split(line)
    command = main.commands[name]
    given = command.make_context(name, words).params
    if name == "run":
        parse_options(find_job(given["job"]), given["options"])
    if name == "show":
        assert given["table"] in TABLES
    if "more" in given:
        read_config(None, given["more"])


def test_commands_are_found_and_each_of_the_command_is_shown() -> None:
    shown = {shlex.split(line)[0] for line in list_commands()}
    assert len(list_commands()) > 20 and isinstance(main, click.Group)
    assert shown | {"list", "settings"} == set(main.commands)


def test_a_page_says_of_every_job_what_it_does_when_what_it_reads_was_replaced() -> None:
    page = (ROOT / "docs/pipelines/replaced.md").read_text("utf-8")
    head, _, *rows = [line[1:-1].split("|") for line in page.splitlines() if line.startswith("|")]
    described = {name: row for row in rows for name in re.findall(r"`([a-z]+)`", row[0])}
    assert set(described) == set(JOBS) and {len(row) for row in rows} == {len(head)}
    for name, job in JOBS.items():
        if job.parts:
            assert re.findall(r"`([a-z]+)`", described[name][1]) == list(job.parts)
            continue
        assert all(cell.strip() for cell in described[name])
        assert ("no journal" in described[name][1]) == (not any(each.startswith("journal.") for each in job.reads)), (
            name
        )
        assert ("keeps none" in described[name][2]) == (not job.queries and name != "reconcile"), name


def test_every_entry_of_the_runbook_that_a_message_names_is_a_heading_of_it() -> None:
    source = (ROOT / "pipelines/src/godwit_pipelines/progress.py").read_text("utf-8")
    named = re.findall(r"see `([^`{]+)` in the runbook", source)
    named += re.findall(r', "([^"]+)"\),$', source[source.index("for count, least, what, entry in") :], re.MULTILINE)[
        :2
    ]
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs/pipelines/runbook.md").read_text("utf-8"), re.MULTILINE)
    assert len(named) == 4 and set(named) <= set(headings)


@pytest.mark.long
def test_what_the_texts_tell_a_reader_to_run_runs(tmp_path: Path) -> None:
    Play(tmp_path / "data", seconds=8, clients=6, start=datetime.now(UTC) - timedelta(minutes=30)).write()
    places = {
        "DATA": str(tmp_path / "data"),
        "LAKE": str(tmp_path / "lake"),
        "IDENTITY": "user-2",
        "DIR": str(tmp_path / "data"),
    }
    log = tmp_path / "said"
    lines = [line for line in list_commands() if not any(word in line for word in ENDLESS)]
    for line in sorted(lines, key=lambda line: ("show" in line, "erase" in line, "run all" not in line)):
        words = [
            re.sub(r"^(erase=)?(DATA|LAKE|IDENTITY|DIR)$", lambda found: (found[1] or "") + places[found[2]], word)
            for word in shlex.split(line)
        ]
        words += ["--page", str(tmp_path / "report.html")] if words[0] == "report" else []
        words += ["--option", "field=$.celsius"] if words[:2] == ["run", "ohlc"] else []
        if words[0] == "show" and words[1] in ("bronze.feedback", "bronze.quarantine"):
            continue  # a life in which nothing is damaged, and nobody is outside, has no such rows
        log.write_text("")
        assert run(*words, log=log) == 0, (line, log.read_text())
    assert "PROVEN" in (tmp_path / "report.html").read_text()
