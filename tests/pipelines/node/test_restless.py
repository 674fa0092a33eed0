"""Whatever clients do to a node that keeps its promises, the audit of its journal is no false alarm."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.jobs import Outcome
from godwit_pipelines.lake import Lake
from tests.pipelines.conftest import ROOT
from tests.pipelines.node.serving import running_node

SCRIPT = Path(__file__).with_name("restless.py")
RUN_S = 240


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_clients_that_subscribe_again_and_again_are_no_fault(
    seed: int, tmp_path: Path, spark: SparkSession, lake: Lake, run_job: Callable[..., Outcome]
) -> None:
    with running_node(tmp_path) as url:
        address = url.replace("http", "ws", 1) + "/v1/live"
        command = [str(ROOT / ".venv/bin/python"), str(SCRIPT), address, str(seed)]
        subprocess.run(command, check=True, timeout=RUN_S)
    (tmp_path / "data").rename(tmp_path / "node-1")  # where the lake of the tests looks
    run_job("land")
    outcome = run_job("audit")
    faults = lake.read("gold.audit_faults").where("not declared").limit(20).collect()
    assert outcome.text.startswith("PROVEN") and not faults, (outcome.text, faults)
    assert lake.read("gold.audit_ranges").count() > 500
