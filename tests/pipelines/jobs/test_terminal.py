"""A publisher's text on the operator's terminal: it is shown, and is never markup or a control sequence."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from godwit_pipelines import cli
from godwit_pipelines.errors import PublishFailed
from godwit_pipelines.jobs import Outcome
from godwit_pipelines.words import json_line, printable, sentences
from tests.pipelines.test_delta import write

HOSTILE = "/a[/b] [bold]\x1b]0;owned\x07\x9b31m\u202egnp\u2066\r\x00"
PLAIN = "/a[/b] [bold]\\u001b]0;owned\\u0007\\u009b31m\\u202egnp\\u2066\\u000d\\u0000"
CONTROLS = {"\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\r", "\x00"}


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert printable(text).isprintable()
    assert all(line.isprintable() for part in sentences(text).split("\n") for line in part.split("\t"))


@given(
    st.dictionaries(
        st.text(), st.text() | st.integers() | st.floats() | st.binary() | st.none() | st.lists(st.floats())
    )
)
def test_json_is_valid_and_says_the_same_on_a_terminal(row: dict[str, Any]) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    line = json_line(row, is_terminal=False)
    found = json.loads(line, parse_constant=refuse)
    assert all(found[name] == value for name, value in row.items() if isinstance(value, str | int))
    on_terminal = json_line(row, is_terminal=True)
    assert json.loads(on_terminal) == found and on_terminal.isprintable()


def test_rows_of_a_table_cannot_colour_or_move_a_line(tmp_path: Path) -> None:
    write(tmp_path / "bronze" / "messages", range(2), subject=HOSTILE)
    for width in ("60", "2000"):
        words = ["show", "bronze.messages", "--lake", str(tmp_path)]
        shown = CliRunner().invoke(cli.main, words, env={"COLUMNS": width})
        assert shown.exit_code == 0 and not CONTROLS & set(shown.output), repr(shown.output)
    lines = CliRunner().invoke(cli.main, [*words, "--json"]).stdout.splitlines()
    assert {json.loads(line)["subject"] for line in lines} == {HOSTILE}, "a program receives what was published"


@pytest.mark.parametrize(
    "failure", [PublishFailed(HOSTILE), RuntimeError(HOSTILE), None], ids=["known", "unknown", "none"]
)
def test_what_a_job_says_of_a_subject_is_not_obeyed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: Exception | None
) -> None:
    def run_job(*_: Any, **__: Any) -> Outcome:
        if failure:
            raise failure
        return Outcome(HOSTILE)

    monkeypatch.setattr(cli, "run_job", run_job)
    monkeypatch.setattr(cli, "check_journals", lambda *_: None)
    words = ["run", "land", "--journal", str(tmp_path), "--every", "1s"]
    result = CliRunner().invoke(cli.main, words)
    assert PLAIN in result.output and not CONTROLS & set(result.output), repr(result.output)


def test_the_name_of_an_emoji_stays_as_it_was_published(tmp_path: Path) -> None:
    write(tmp_path / "bronze" / "messages", range(1), subject="/:smile:")
    for width in ("60", "2000"):
        words = ["show", "bronze.messages", "--lake", str(tmp_path)]
        assert "/:smile:" in CliRunner().invoke(cli.main, words, env={"COLUMNS": width}).output


def test_what_a_query_is_called_is_not_markup() -> None:
    from types import SimpleNamespace

    from godwit_pipelines import progress

    written = io.StringIO()
    query: Any = SimpleNamespace(name="[/b]", recentProgress=[], awaitTermination=lambda _: True)
    progress.watch(query, Console(file=written, width=80))
    assert written.getvalue() == "[/b]: 0 rows in 0.0 s\n"


def test_a_condition_on_text_passes_over_what_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "bronze" / "messages"
    write(path, range(2), content=b"\xff\xfe")
    write(path, range(2, 4), batch=1, content=b'{"a": 1}')
    words = ["show", "bronze.messages", "--lake", str(tmp_path), "--json", "--where"]
    for where, offsets in (
        ("content LIKE '%\"a\"%'", {2, 3}),
        ("strpos(CAST(content AS varchar), 'a') > 0 AND journal_offset > 2", {3}),
        ("content = x'fffe'", {0, 1}),
        ("journal_offset < 3", {0, 1, 2}),
    ):
        shown = CliRunner().invoke(cli.main, [*words, where])
        assert shown.exit_code == 0, shown.output
        rows = [json.loads(line) for line in shown.stdout.splitlines()]
        assert {row["journal_offset"] for row in rows} == offsets
        expected = [{"base64": "//4="} if row["journal_offset"] < 2 else '{"a": 1}' for row in rows]
        assert [row["content"] for row in rows] == expected
    failed = CliRunner().invoke(cli.main, [*words, "content LIKE '%a%' AND nothing = 1"])
    assert failed.exit_code == 2 and "is not a valid condition" in failed.output
