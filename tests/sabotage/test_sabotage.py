"""Every broken broker is caught every time, and an honest one never: the proof of the proof (`make sabotage` shows it as a table)."""

from __future__ import annotations

import subprocess

import pytest

from godwit.verify.brokers import BrokerMissing
from tests.sabotage.culprits import CULPRITS, ROOT, Culprit, is_caught, try_culprit

pytestmark = pytest.mark.long


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "--release", "-p", "godwit-sabotage"], cwd=ROOT, check=True
    )


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("culprit", CULPRITS, ids=lambda culprit: culprit.name)
async def test_who_breaks_a_promise_is_caught_and_who_does_not_is_not(culprit: Culprit, seed: int) -> None:
    try:
        scene = await try_culprit(culprit, seed)
    except BrokerMissing as missing:
        pytest.skip(str(missing))
    assert is_caught(culprit, scene), scene.findings.counts
