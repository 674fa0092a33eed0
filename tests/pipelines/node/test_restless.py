"""The audit of a correct node's journal raises no false alarm, whatever its clients do."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.jobs import Outcome
from godwit_pipelines.lake import Lake
from tests.pipelines.conftest import ROOT
from tests.pipelines.node.serving import node_at, running_node

SCRIPT = Path(__file__).with_name("restless.py")
RUN_S = 240
TOKEN = "a-token-of-the-tests-alone"


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_clients_that_subscribe_again_and_again_are_no_fault(
    seed: int, tmp_path: Path, spark: SparkSession, lake: Lake, run_job: Callable[..., Outcome]
) -> None:
    with running_node(tmp_path) as url:
        be_restless(seed, url)
    prove(tmp_path, lake, run_job)
    assert lake.read("gold.audit_ranges").count() > 500


@pytest.mark.long
def test_clients_that_take_their_places_to_another_node_are_no_fault(
    tmp_path: Path, spark: SparkSession, lake: Lake, run_job: Callable[..., Outcome]
) -> None:
    names = ("a", "b")
    with ExitStack() as nodes:
        for name in names:
            (tmp_path / name).mkdir()
        urls = [nodes.enter_context(running_node(tmp_path / name, "--set", f"node.name={name}")) for name in names]
        be_restless(3, *urls)
    prove(tmp_path, lake, run_job, *names)
    ranges = lake.read("gold.audit_ranges").groupBy("node").count().collect()
    assert {row["node"] for row in ranges} == {*names} and all(row["count"] > 200 for row in ranges)


@pytest.mark.long
@pytest.mark.parametrize("log_messages", [50, 1_000])
def test_devices_that_overlap_share_and_come_back_are_no_fault(
    log_messages: int, tmp_path: Path, spark: SparkSession, lake: Lake, run_job: Callable[..., Outcome]
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    words = ["--mqtt", "127.0.0.1:0", "--set", f"admin.token_file={tmp_path / 'token'}"]
    words += ["--set", f"limits.log_messages_max={log_messages}"]
    with node_at(tmp_path, *words) as (addresses, _):
        command = [str(ROOT / ".venv/bin/python"), "-m", "tests.pipelines.node.restless_devices"]
        command += [addresses["client"], addresses["mqtt"], addresses["admin"], TOKEN, str(log_messages)]
        subprocess.run(command, check=True, timeout=RUN_S, cwd=ROOT)
    prove(tmp_path, lake, run_job)
    shared = lake.read("gold.audit_ranges").where("connection < 0 and messages > 0").select("selector").distinct()
    assert shared.count() == 3


def be_restless(seed: int, *urls: str) -> None:
    addresses = [url.replace("http", "ws", 1) + "/v1/live" for url in urls]
    subprocess.run([str(ROOT / ".venv/bin/python"), str(SCRIPT), str(seed), *addresses], check=True, timeout=RUN_S)


def prove(folder: Path, lake: Lake, run_job: Callable[..., Outcome], *nodes: str) -> None:
    for number, node in enumerate(nodes or (".",), 1):
        (folder / node / "data").rename(folder / f"node-{number}")  # where the lake of the tests looks
    run_job("land")
    outcome = run_job("audit")
    faults = lake.read("gold.audit_faults").where("not declared").limit(20).collect()
    assert outcome.text.startswith("PROVEN") and not faults, (outcome.text, faults)
