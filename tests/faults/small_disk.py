"""A real file system of a few megabytes that only the nodes of one test see: a tmpfs in a mount namespace of their own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from godwit.children import follow_parent


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """Where it is mounted for those that `before` begins there; `seen` is the same folder from outside."""

    path: Path
    seen: Path
    before: tuple[str, ...]

    async def run(self, *command: object) -> None:
        """A command among the nodes that see the disk."""
        process = await asyncio.create_subprocess_exec(*self.before, *(str(word) for word in command))
        assert await process.wait() == 0, command


@asynccontextmanager
async def small_disk(path: Path, size: int) -> AsyncIterator[SmallDisk]:
    """Mounts it until the block ends. Where the machine allows no namespaces, the test is skipped."""
    if not (shutil.which("unshare") and shutil.which("nsenter")):
        pytest.skip("unshare and nsenter (util-linux) are not here")
    hold = f"mkdir '{path}' && mount -t tmpfs -o size={size} tmpfs '{path}' && echo mounted && exec cat"
    holder = await asyncio.create_subprocess_exec(
        *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hold),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=follow_parent(),
    )
    assert holder.stdout is not None and holder.stdin is not None and holder.stderr is not None
    try:
        if not await holder.stdout.readline():
            pytest.skip(f"this machine allows no mount namespaces: {(await holder.stderr.read()).decode().strip()}")
        before = ("nsenter", "--target", str(holder.pid), "--user", "--mount", "--preserve-credentials")
        yield SmallDisk(path, Path(f"/proc/{holder.pid}/root{path}"), before)
    finally:
        holder.stdin.close()  # what it holds goes with it
        await holder.wait()
