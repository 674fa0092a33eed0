"""godwit.bench: plans fit the generator, figures are read as they are meant, outcomes keep medians and no secrets."""

from __future__ import annotations

import getpass
import json
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from godwit.bench import bench, result
from godwit.bench.command import choose_targets, describe_outcome
from godwit.bench.generator import run_plan
from godwit.bench.loads import LOADS, Load
from godwit.bench.result import build_outcome, describe_machine, find_commit
from godwit.bench.rounds import Measured, _fit, run_rounds
from godwit.bench.shape import Shape
from godwit.bench.targets import TARGETS, BenchFailed


def step(name: str, **values: Any) -> dict[str, Any]:
    latency = {"p50_us": 1.0, "p99_us": 5.0, "p999_us": 6.0, "max_us": 7.0}
    counts = {"delivered": 1_000, "reads": 500, "acked": 1_000, "cpu_seconds": 0.002, "seconds": 1.0, "pss_kb": 100}
    return {"name": name, "latency": latency, **counts, **values}


@pytest.mark.parametrize("load", LOADS.values(), ids=LOADS)
@pytest.mark.parametrize("size", [1.0, 0.01])
def test_every_plan_has_subscribers_or_publishers_and_named_steps(load: Load, size: float) -> None:
    for shape in load.shapes(size):
        assert shape.subscribers + shape.publishers > 0
        names = [found["name"] for found in shape.steps]
        assert len(set(names)) == len(names)
        assert all(found["messages"] >= 1 for found in shape.steps if found["do"] == "publish")


def test_cpu_a_delivery_is_of_the_measured_step_alone() -> None:
    results = [{"steps": [step("connect", cpu_seconds=9.0), step("many")], "pss_kb_before": 0}]
    figures = LOADS["many"].figures(results, LOADS["many"].shapes(1.0))
    assert figures["cpu_us_per_delivery"] == 2.0
    assert figures["deliveries_per_read"] == 2.0


def test_memory_is_what_grew_since_before_the_first_connection() -> None:
    results = [{"steps": [step("connect"), step("idle", pss_kb=5_000)], "pss_kb_before": 1_000}]
    assert LOADS["idle"].figures(results, LOADS["idle"].shapes(1.0)) == {"memory_kb_per_connection": 0.4}


def test_the_slow_load_compares_with_itself_without_the_silent() -> None:
    woken = {"exact": 2, "clients": 2, "send_queues": [40_960, 1_024]}
    without = {"steps": [step("pause"), step("paced"), step("saturated")]}
    slower = step("paced", cpu_seconds=0.0021)
    silent = {"steps": [step("pause"), slower, step("saturated", pss_kb=150), step("wake", told=woken)]}
    figures = LOADS["slow"].figures([without, silent], [])
    assert figures["cpu_ratio"] == pytest.approx(1.05)
    assert (figures["memory_grown_kb"], figures["send_queue_kb"], figures["exact"]) == (50, 40.0, 1.0)


def test_a_window_without_acknowledgements_counts_what_was_delivered() -> None:
    plan = LOADS["saturated"].shapes(1.0)[0].plan()
    _fit(plan, TARGETS["nats"])
    assert not plan["is_acked"]
    assert [found.get("ahead_max") for found in plan["steps"]] == [None, 64, 64]


def test_a_channel_in_the_address_needs_a_publisher_each() -> None:
    plan = LOADS["many"].shapes(1.0)[0].plan()
    _fit(plan, TARGETS["nchan"])
    assert plan["publishers"] == 100


def test_an_outcome_keeps_medians_and_the_median_of_ratios() -> None:
    ours = Measured(figures=[{"cpu_us_per_delivery": value} for value in (2.0, 9.0, 4.0)], runs=[[]] * 3)
    baseline = Measured(figures=[{"cpu_us_per_delivery": value} for value in (1.0, 3.0, 4.0)], runs=[[]] * 3)
    outcome = build_outcome(LOADS["fanout"], {"godwit": ours, "baseline": baseline}, "auto", 1.0)
    assert outcome["servers"]["godwit"]["median"] == {"cpu_us_per_delivery": 4.0}
    assert outcome["against_baseline"] == {"godwit": {"cpu_us_per_delivery": 2.0}}
    assert "2.00 x the baseline" in describe_outcome(outcome)


def test_an_outcome_names_no_host_and_no_user() -> None:
    machine = json.dumps(describe_machine())
    assert socket.gethostname() not in machine
    assert f"/{getpass.getuser()}/" not in machine


def test_servers_are_chosen_by_name_and_rivals_only_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program: f"/bin/{program}" if program == "cc" else None)
    assert [target.name for target in choose_targets(LOADS["fanout"], "baseline,rivals")] == ["baseline"]
    with pytest.raises(BenchFailed, match="not a known server"):
        choose_targets(LOADS["fanout"], "teapot")


def test_without_a_compiler_the_default_baseline_is_left_out_and_a_named_one_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert choose_targets(LOADS["fanout"], None) == []
    assert "baseline is left out: cc is not on the path" in capsys.readouterr().err
    with pytest.raises(BenchFailed, match="cc is not on the path"):
        choose_targets(LOADS["fanout"], "baseline")


def test_a_plan_that_cannot_be_is_refused_with_a_sentence() -> None:
    plan = Shape(1, 1, []).plan() | {"dialect": "teapot", "address": "127.0.0.1:1"}
    with pytest.raises(OSError, match="teapot"):
        run_plan(plan, lambda text: None)
    with pytest.raises(ValueError, match="subjects must be"):
        run_plan(plan | {"subjects": 0}, lambda text: None)


def test_a_server_that_is_not_there_is_a_failure_not_a_result() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        plan = LOADS["connect"].shapes(0.001)[0].plan()
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        result = run_plan(plan | {"dialect": "baseline", "address": address}, lambda text: None)
    assert "refused" in result["fault"]


def test_the_baseline_takes_every_load_it_can_and_loses_nothing() -> None:
    targets = choose_targets(LOADS["fanout"], "baseline")
    for name in ("connect", "fanout", "many", "publish"):
        measured = run_rounds(LOADS[name], targets, 1, "auto", 0.01, lambda text: None)
        assert len(measured["baseline"].figures) == 1


def test_the_command_refuses_a_load_it_does_not_know() -> None:
    answer = CliRunner().invoke(bench, ["teapot"])
    assert answer.exit_code == 2
    assert "'teapot' is not one of" in answer.output


def test_a_round_in_which_a_server_merged_is_taken_again_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = iter([500, 1_000, 1_000])
    ran: list[int] = []

    def run_once(*_: Any) -> dict[str, Any]:
        ran.append(next(reads))
        return {"steps": [step("many", reads=ran[-1])]}

    monkeypatch.setattr("godwit.bench.rounds._run_once", run_once)
    measured = run_rounds(LOADS["many"], [TARGETS["baseline"]], 2, "auto", 1.0, lambda text: None)["baseline"]
    assert [figures["deliveries_per_read"] for figures in measured.figures] == [1.0, 1.0]
    assert (len(ran), measured.retaken) == (3, 1)


def test_a_rival_that_merges_in_every_round_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run_once(load: Any, target: Any, *_: Any) -> dict[str, Any]:
        ran.append(target.name)
        return {"steps": [step("many", reads=1_000 if target.name == "baseline" else 200)]}

    monkeypatch.setattr("godwit.bench.rounds._run_once", run_once)
    run_rounds(LOADS["many"], [TARGETS["baseline"], TARGETS["nats"]], 2, "auto", 1.0, lambda text: None)
    assert ran == ["baseline", "nats"] * 2


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ("clients/javascript/src/client.js", True),
        ("clients/python/godwit/client.py", True),
        ("benchmarks/clients/receive.mjs", True),
        ("core/src/lib.rs", True),
        ("Cargo.lock", True),
        ("benchmarks/results/clients/receive.json", False),
        ("docs/index.md", False),
    ],
)
def test_the_commit_is_marked_where_measured_files_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, differs: bool
) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    path = tmp_path / changed
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("before")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "--no-gpg-sign", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(result, "REPOSITORY", tmp_path)
    assert not find_commit().endswith("+")
    path.write_text("after")
    assert find_commit().endswith("+") == differs
