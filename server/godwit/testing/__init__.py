"""Start a real node inside a test: `async with testing.node() as node`.

The node listens on free ports (port 0) and stops when the block ends. Use it to test authorizers and clients against a
real node. fake_engine.py is for tests of the code around the engine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ..config import Address, build_config
from ..config.key_lines import KeyLines
from ..engine import OpenEngine, open_engine
from ..server import Node

FREE_PORTS: Mapping[str, Mapping[str, Any]] = {
    "client": {"address": "127.0.0.1:0"},
    "mqtt": {"address": "127.0.0.1:0"},
    "admin": {"address": "127.0.0.1:0"},
    "monitoring": {"push": False},
}
"""Free ports, and nothing else on the node."""


@dataclass(frozen=True, slots=True)
class RunningNode:
    """A running node. `client` and `admin` are its addresses; the properties are URLs."""

    node: Node
    client: Address
    admin: Address
    mqtt: Address | None
    client_tls: Address | None = None
    mqtt_tls: Address | None = None

    @property
    def url(self) -> str:
        """Where a WebSocket client connects."""
        return f"ws://{self.client}/v1/live"

    @property
    def admin_url(self) -> str:
        """The admin port, without a path."""
        return f"http://{self.admin}"


@asynccontextmanager
async def node(
    settings: Mapping[str, Any] | None = None, *, open_engine: OpenEngine = open_engine
) -> AsyncIterator[RunningNode]:
    """A node with the given configuration, as TOML tables: `node({"limits": {"log_messages_max": 10}})`."""
    table: dict[str, Any] = {name: dict(section) for name, section in FREE_PORTS.items()}
    for name, section in (settings or {}).items():
        table[name] = {**table.get(name, {}), **section}
    running = Node(build_config(table, {}, {}, key_lines=KeyLines("testing.node")), open_engine=open_engine)
    listeners = await running.start()
    try:
        bound = listeners
        yield RunningNode(running, bound.client, bound.admin, bound.mqtt, bound.client_tls, bound.mqtt_tls)
    finally:
        await running.stop()
