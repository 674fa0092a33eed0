"""A node in a process of its own for all tests of the folder, and raw connections to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.mqtt.packets import V5, Peer, connect

Open = Callable[..., Peer]
"""Opens a connection: `opened("name", version)` has joined, `opened(None)` has said nothing yet."""


@dataclass(frozen=True)
class Served:
    """Where a node listens, by the names of its line."""

    addresses: dict[str, str]
    process: subprocess.Popen[str]

    def __getitem__(self, name: str) -> tuple[str, int]:
        host, _, port = self.addresses[name].rpartition(":")
        return host, int(port)

    @property
    def mqtt(self) -> tuple[str, int]:
        return self["mqtt"]


@contextmanager
def serve(*settings: str, flags: Sequence[str] = (), log: Path = Path(os.devnull)) -> Iterator[Served]:
    """A node with these settings, `key=value`, and flags, until the block ends; its log goes into a file."""
    ports = ["--client", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    options = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "godwit", "serve", *ports, *options, *flags]
    with (
        log.open("ab") as lines,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=lines, text=True) as process,
    ):
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("listening "))
        try:
            yield Served(dict(word.split("=", 1) for word in line.split()[1:]), process)
        finally:
            process.terminate()
            process.stdout.read()


@pytest.fixture(scope="session")
def mqtt_address() -> Iterator[tuple[str, int]]:
    with serve("limits.mqtt_receive_max=20") as node:
        yield node.mqtt


@pytest.fixture
def opened(mqtt_address: tuple[str, int]) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_peer(name: str | None = "", version: int = V5, **said: object) -> Peer:
            peer = stack.enter_context(Peer(mqtt_address, version))
            if name is not None:
                peer.join(connect(name, version, **said))  # type: ignore[arg-type]  # passed on as it is
            return peer

        yield open_peer
