"""The command `godwit plan`: a file and flags, figures kept and used again, mistakes in a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from godwit.errors import ConfigInvalid
from godwit.plan import plan
from godwit.plan.check import Compared
from godwit.plan.machine import MachineInvalid

from .figures import MACHINE


@pytest.fixture
def figures(tmp_path: Path) -> Path:
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(MACHINE.describe()))
    return file


def run(*words: Any) -> Any:
    return CliRunner().invoke(plan, [str(word) for word in words])


def test_flags_stand_above_the_file(tmp_path: Path, figures: Path) -> None:
    file = tmp_path / "workload.toml"
    file.write_text("[workload]\nconnections = 5_000\nsubjects = 10\n[machine]\ncores = 8\n")
    planned = json.loads(run(file, "--figures", figures, "--subjects", 20, "--json").output)
    assert (planned["workload"]["connections"], planned["workload"]["subjects"], planned["budget"]["cores"]) == (
        5_000,
        20,
        8,
    )
    assert planned["fits"] is True
    assert planned["most"]["connections"] > 5_000


def test_it_measures_and_keeps_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("godwit.plan.command.measure_machine", lambda driver, show: MACHINE)
    kept = tmp_path / "kept.json"
    assert run("--keep", kept).exit_code == 0
    assert json.loads(kept.read_text()) == json.loads(json.dumps(MACHINE.describe()))


@pytest.mark.parametrize(("ratio", "exit_code"), [(1.1, 0), (1.6, 1)])
def test_a_prediction_that_is_off_is_the_exit_code(
    figures: Path, monkeypatch: pytest.MonkeyPatch, ratio: float, exit_code: int
) -> None:
    played = [Compared("the workload", "cores", ratio, 1.0)]
    monkeypatch.setattr("godwit.plan.command.check_prediction", lambda workload, machine, show: played)
    answer = run("--figures", figures, "--check")
    assert (answer.exit_code, f"{ratio:.2f}" in answer.output) == (exit_code, True)


def test_mistakes_are_sentences(tmp_path: Path, figures: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[workload")
    assert isinstance(run(broken, "--figures", figures).exception, ConfigInvalid)
    assert isinstance(run(tmp_path / "none.toml", "--figures", figures).exception, ConfigInvalid)
    assert isinstance(run("--figures", broken).exception, MachineInvalid)
    assert run("--connections", "many").exit_code == 2
