"""The commands of docs/guides/http.md, run one after the other against a fresh node, print what the guide says."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.node_process import running_node

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/http.md"
STEP = re.compile(r"```sh\n(.*?)```\n```out\n(.*?)```", re.DOTALL)


def plain(text: str) -> str:
    """What differs from run to run (epochs, times), taken out."""
    return re.sub(r'"time":\d+', '"time":0', re.sub(r"\b\d+\.(\d+)(?=[\"\n])", r"E.\1", text)).strip()


async def test_the_guide_does_what_it_says() -> None:
    if shutil.which("curl") is None:
        pytest.skip("the guide is written for curl, and there is none")
    steps = STEP.findall(GUIDE.read_text("utf-8"))
    assert len(steps) >= 8
    async with running_node() as node:
        for command, expected in steps:
            script = command.replace("http://127.0.0.1:8800", f"http://{node.host}:{node.port}")
            done = await asyncio.to_thread(
                subprocess.run, ["sh", "-c", script], capture_output=True, text=True, timeout=30, check=False
            )
            assert plain(done.stdout) == plain(expected), command
