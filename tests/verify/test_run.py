"""`godwit verify` for real: a node that is killed, frozen and cut keeps its guarantees; other brokers are judged by the same checkers.

`TEST_SEED=7` repeats a run's plan.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from godwit import testing
from godwit.verify.brokers import OTHERS, BrokerMissing, GodwitBroker
from godwit.verify.command import verify
from godwit.verify.judge.finding import Guarantee
from godwit.verify.plan import FaultKind, Kind, Scale, make_plan
from godwit.verify.report import build_document, build_page
from godwit.verify.verdict import build_verdict
from godwit.verify.verify_run import VerifyRun, run_plan

SEED = int(os.environ.get("TEST_SEED", "1"))
QUICK_FAULTS = frozenset({FaultKind.CUT, FaultKind.KILL, FaultKind.STALL, FaultKind.HALF_OPEN, FaultKind.FREEZE})


def report_of(run: VerifyRun) -> str:
    """What went wrong, for the one who has to look at it."""
    lines = [f"seed {run.plan.seed}: {run.findings.counts}"]
    for finding in run.findings.kept[:5]:
        lines += [f"{finding.guarantee}: {finding.who} on {finding.subject}: {finding.sentence}", *finding.history]
    return "\n".join(lines)


async def test_a_node_that_is_killed_frozen_and_cut_keeps_every_guarantee(tmp_path: Path) -> None:
    broker = GodwitBroker()
    plan = make_plan(SEED, Scale(seconds=20, subscribers=40, publishers=4, rate=100), broker.kinds, QUICK_FAULTS)
    run = await run_plan(plan, broker, lambda run: None)
    assert not run.findings.total, report_of(run)
    counts = build_verdict(run).counts
    assert counts["restarts"] >= 1 and counts["losses"] > 20 and counts["messages"] > 1_000
    assert counts["merges_judged"] > 10
    document = build_document(run, build_verdict(run), "godwit verify --seed 1")
    page = build_page(document)
    assert "PASSED" in page and "killed" in page and "://" not in page.replace("http://www.w3.org", "")


@pytest.mark.long
@pytest.mark.parametrize("driver", ["io_uring", "readiness"])
async def test_a_node_keeps_every_guarantee_for_minutes_under_every_fault_kind(driver: str) -> None:
    seed = int(os.environ.get("TEST_SEED") or Random().randrange(1 << 32))
    broker = GodwitBroker(settings={"node.driver": driver})
    plan = make_plan(seed, Scale(seconds=180, subscribers=150), broker.kinds, frozenset(FaultKind))
    run = await run_plan(plan, broker, lambda run: None)
    assert not run.findings.total, report_of(run)


@pytest.mark.long
@pytest.mark.parametrize("name", list(OTHERS))
async def test_other_brokers_are_judged_and_keep_what_they_guarantee_while_clients_are_cut(name: str) -> None:
    try:
        broker = OTHERS[name]()
    except BrokerMissing as missing:
        pytest.skip(str(missing))
    scale = Scale(seconds=15, subscribers=12, rate=60)
    plan = make_plan(SEED, scale, broker.kinds & {Kind.SUBJECT, Kind.PATTERN}, frozenset({FaultKind.CUT}))
    run = await run_plan(plan, broker, lambda run: None)
    assert not run.findings.total, report_of(run)
    counts = build_verdict(run).counts
    assert counts["losses"] > 0 and counts["messages"] > 300
    assert build_verdict(run).guarantees[Guarantee.GAPS] == "not guaranteed"


def test_the_command_says_what_it_does_not_know() -> None:
    done = CliRunner().invoke(verify, ["--fault", "flood"])
    assert done.exit_code == 2 and "half-open" in done.output


@pytest.mark.long
async def test_a_node_that_is_there_is_judged_rightly_also_the_second_time() -> None:
    """With the same seed, so that subjects, contents and keys would all be those of the first run."""
    async with testing.node() as node:
        for _ in range(2):
            words = ["--url", node.url, "--seconds", "5", "--seed", "4", "--subscribers", "8", "--fault", "none"]
            done = await asyncio.to_thread(CliRunner().invoke, verify, words)
            assert done.exit_code == 0, done.output
