"""Nodes that begin quickly, for tests that kill very many: a process that has loaded the program forks one for each.

What dies is a process like any other, with its threads and its files; only loading the program again is saved, which is most of a start.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from godwit.children import follow_parent, wait_for_end

START_TIMEOUT_S = 60


class Born(NamedTuple):
    """A running node."""

    pid: int
    host: str
    port: int
    mqtt: tuple[str, int]


class Nursery:
    """One node at a time: the next begins once the one before it has ended."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def start(self, settings: Mapping[str, object], flags: Sequence[str] = ()) -> Born:
        """Begins a node with these settings and flags; returns when it listens."""
        words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")] + [*flags]
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
        async with asyncio.timeout(START_TIMEOUT_S):
            pid = int(await self._read("forked "))
            addresses = dict(word.split("=", 1) for word in (await self._read("listening ")).split())
        host, _, port = addresses["client"].rpartition(":")
        mqtt_host, _, mqtt_port = addresses["mqtt"].rpartition(":")
        return Born(pid, host, int(port), (mqtt_host, int(mqtt_port)))

    async def _read(self, beginning: str) -> str:
        assert self._process.stdout is not None
        while line := (await self._process.stdout.readline()).decode():
            if line.startswith(beginning):
                return line.removeprefix(beginning)
        raise RuntimeError("the nursery ended")


def kill(node: Born) -> None:
    """Kill it at once; it notifies no client."""
    os.kill(node.pid, signal.SIGKILL)


@asynccontextmanager
async def open_nursery() -> AsyncIterator[Nursery]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        preexec_fn=follow_parent(),
    )
    try:
        yield Nursery(process)
    finally:
        process.kill()
        await wait_for_end(process)


def main() -> None:
    """A node for each line of words; it ends before the next begins."""
    for name in ("godwit.engine", "godwit.logs", "godwit.server"):
        importlib.import_module(name)  # here, once, for all nodes
    from godwit.cli.serve import serve

    follow = follow_parent()
    places = ["--client", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            follow()
            serve.main([*places, *json.loads(line)])
        print("forked", child, flush=True)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
