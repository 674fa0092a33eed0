"""Commands in the guides that end by themselves, or can be ended, are run unchanged against a real node."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from godwit import testing
from tests.architecture.source import ROOT
from tests.docs.test_snippets import list_commands
from tests.unit.plan.figures import MACHINE

DEADLINE_S = 120
ENDLESS = {"godwit top": ["--once"], "godwit tail": ["--count", "2"]}
"""What goes on until it is stopped, and how it is asked to stop."""
RUN = ("top", "tail '/$node", "config", "plan workload.toml", "plan --connections 200000", "bench --help")


def list_bounded() -> list[str]:
    """Each once, without what stands behind it in the text."""
    lines = [re.split(r"\s{2,}|\s[|>#]", line)[0].strip() for _, line in list_commands()]
    return [line for line in dict.fromkeys(lines) if line.startswith(RUN) and "/etc/" not in line]


def fit(line: str, node: testing.RunningNode, folder: Path) -> list[str]:
    """For the node under test, and so that it ends; a plan is made from figures that are there."""
    words = shlex.split(line)
    command = f"godwit {words[0]}"
    if words[0] == "top":
        words += ["--admin", node.admin_url]
    if words[0] == "tail":
        words += ["--server", node.url]
    if words[0] == "plan":
        words += ["--figures", str(folder / "figures.json")]
    if not {"--once", "--json"} & set(words):
        words += ENDLESS.get(command, [])
    return words


@pytest.mark.long
async def test_what_the_guides_tell_a_reader_to_run_runs(tmp_path: Path) -> None:
    (tmp_path / "figures.json").write_text(json.dumps(MACHINE.describe()))
    text = (ROOT / "docs/guides/planning.md").read_text(encoding="utf-8")
    found = re.search(r'```toml title="workload.toml"\n(.*?)```', text, re.DOTALL)
    assert found is not None
    (tmp_path / "workload.toml").write_text(found.group(1))
    lines = list_bounded()
    assert len(lines) >= 10, lines
    settings = {"monitoring": {"push": True}, "node": {"name": "n1"}}
    async with testing.node(settings) as node, asyncio.timeout(DEADLINE_S):
        for line in lines:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "godwit", *fit(line, node, tmp_path)),
                cwd=tmp_path,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            said, errors = await process.communicate()
            assert process.returncode == 0 and said.strip(), (line, errors.decode())
