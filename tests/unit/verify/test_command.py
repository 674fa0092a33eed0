"""godwit.verify.command: the printed command can be run again, and guarantees that could not be judged are not reported as broken."""

from __future__ import annotations

import shlex

import pytest
from click.testing import CliRunner

from godwit.verify.command import EXIT_NOT_JUDGED, say_again, verify


@pytest.mark.parametrize(
    ("given", "again"),
    [
        ("", ""),
        ("--seconds 20 --html page.html --json report.json --seed 4", "--seconds 20"),
        ("--kind slow --kind saved --rate 12345.678 --set limits.log_messages_max=9", None),
        ("--url 'ws://[::1]:8800' --exclude-fault kill", None),
    ],
)
def test_the_command_that_draws_the_same_plan_holds_all_that_matters(given: str, again: str | None) -> None:
    words = shlex.split(given)
    said = say_again(verify.make_context("verify", list(words)), 7)
    expected = words if again is None else again.split()
    begin, seed = shlex.split(said)[2:-2], shlex.split(said)[-2:]
    assert (sorted(begin), seed) == (sorted(expected), ["--seed", "7"])
    verify.make_context("verify", shlex.split(said)[2:])


def test_a_secret_of_the_command_does_not_come_into_a_report() -> None:
    said = say_again(verify.make_context("verify", ["--set", "admin.token=open-sesame"]), 7)
    assert "sesame" not in said and "admin.token=(secret)" in said


def test_a_broker_that_is_not_here_is_no_broken_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    result = CliRunner().invoke(verify, ["--broker", "nats", "--seconds", "5"])
    assert result.exit_code == EXIT_NOT_JUDGED and "nats-server is not on the PATH" in result.output
