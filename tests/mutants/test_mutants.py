"""Every broken broker is caught every time, and an honest one never: the proof of the proof (`make mutants` shows it as a table)."""

from __future__ import annotations

import subprocess

import pytest

from godwit.verify.brokers import BrokerMissing
from tests.mutants.mutants import MUTANTS, ROOT, Mutant, is_caught, try_mutant

pytestmark = pytest.mark.long


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--release", "-p", "godwit-mutants"], cwd=ROOT, check=True)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
async def test_who_breaks_a_guarantee_is_caught_and_who_does_not_is_not(mutant: Mutant, seed: int) -> None:
    try:
        run = await try_mutant(mutant, seed)
    except BrokerMissing as missing:
        pytest.skip(str(missing))
    assert is_caught(mutant, run), run.findings.counts
