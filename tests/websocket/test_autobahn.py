"""Autobahn|Testsuite 25.10.1 finds no fault in the node's WebSocket: every case passes, strictly, except those listed here.

The server under test is the engine itself, set to echo every message (`engine/examples/echo.rs`), as the suite requires. Cases 12 and 13
(compression, 216 of 517) take minutes and run when AUTOBAHN=all, in parts.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN_TIMEOUT_S = 280
"""Less than any test may take."""
QUICK = "all but compression"
IS_ALL = os.environ.get("AUTOBAHN") == "all"
COMPRESSED = [f"12.{kind}" for kind in range(1, 6)] + [f"13.{kind}" for kind in range(1, 8)]
PARTS = {QUICK: ["*"]} | {
    f"{kind}.{first} and on": [f"{kind}.{case}" for case in range(first, first + 3)]
    for kind in (COMPRESSED if IS_ALL else [])
    for first in range(1, 19, 3)
}
QUICK_COUNT = 301
INFORMATIONAL = {
    "7.1.6": "a large message behind a close: the standard leaves open whether it is read",
    "7.13.1": "a close code beyond 4999: the standard gives it no meaning, here it is refused with 1002",
    "7.13.2": "the largest close code that can be written: as above",
}
"""Cases for which the suite itself knows no right answer."""
UNIMPLEMENTED: dict[str, str] = {}
GOOD_CLOSES = {"OK", "INFORMATIONAL"}

pytestmark = pytest.mark.long


def find_python() -> str:
    found = subprocess.run([ROOT / ".ci/autobahn"], cwd=ROOT, text=True, capture_output=True)
    if found.returncode:
        pytest.skip(found.stderr.strip())  # nothing but Python 2.7 runs the suite, and few machines have it
    return found.stdout.strip()


@contextmanager
def echo() -> Iterator[str]:
    """The echoing node; yields where it listens."""
    profile = ["--release"] if IS_ALL else []  # a thousand messages of 128 kB a case, deflated and inflated
    command = ["cargo", "run", "--quiet", "--locked", *profile, "-p", "godwit-engine", "--example", "echo"]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip().partition("=")[2]
            assert process.poll() is None, "it died of a case"
        finally:
            process.stdin.close()


def run_suite(python: str, address: str, folder: Path, part: str) -> dict[str, dict[str, str]]:
    specification = {
        "outdir": str(folder),
        "servers": [{"agent": "godwit", "url": f"ws://{address}/v1/live"}],
        "cases": PARTS[part],
        "exclude-cases": ["12.*", "13.*"] if part == QUICK else [],
    }
    (folder / "fuzzingclient.json").write_text(json.dumps(specification))
    start = "from autobahntestsuite.wstest import run; run()"
    command = [python, "-W", "ignore", "-c", start, "-m", "fuzzingclient", "-s", str(folder / "fuzzingclient.json")]
    environment = os.environ | {"PYTHONPATH": str(ROOT / ".make/autobahn")}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=RUN_TIMEOUT_S, cwd=folder)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    report: dict[str, dict[str, str]] = json.loads((folder / "index.json").read_text())["godwit"]
    return report


@pytest.mark.parametrize("part", PARTS)
def test_autobahn_finds_no_fault(tmp_path: Path, part: str) -> None:
    python = find_python()
    with echo() as address:
        report = run_suite(python, address, tmp_path, part)
    assert len(report) == (QUICK_COUNT if part == QUICK else len(PARTS[part]))
    reasons = INFORMATIONAL | UNIMPLEMENTED
    odd = {
        case: (row["behavior"], row["behaviorClose"])
        for case, row in report.items()
        if (row["behavior"] != "OK" or row["behaviorClose"] not in GOOD_CLOSES) and case not in reasons
    }
    assert not odd
    assert {case for case in INFORMATIONAL if case in report and report[case]["behavior"] != "INFORMATIONAL"} == set()
