"""Godwit: a node that is started here, or one at an address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from ...errors import ConfigInvalid
from ..clients.javascript import JavascriptSubscriber, find_client
from ..clients.library import ClientSubscriber
from ..clients.publisher import Publisher
from ..clients.raw import RawSubscriber
from ..judge.context import CheckContext, Rules
from ..node import LIMITS, Node
from ..plan import Kind, Plan
from ..timing import Clock
from .broker import Publishing, Subscriber, SubscriberSetup


def read_place(url: str) -> tuple[str, int]:
    """HOST and PORT of a node's address, as a URL or as HOST:PORT; raises ConfigInvalid."""
    try:
        parts = urlsplit(url if "://" in url else f"ws://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None or parts.scheme not in ("ws", "http"):
        raise ConfigInvalid("--url", url, "is not a node's address without TLS", hint="such as ws://127.0.0.1:8800")
    return host, port


class GodwitBroker:
    """`url` is the address of a running node; without it a node is started, by `command` if that is given."""

    name = "godwit"
    needs_everybody_first = False

    def __init__(
        self,
        url: str | None = None,
        command: list[str] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self._url, self._command, self._settings = url, command, settings
        self._there = read_place(url) if url is not None else None
        self.node: Node | None = None
        self.address = ("", 0)
        self.notes: list[str] = []
        self.kinds = frozenset(Kind)
        if find_client() is None:
            self.kinds -= {Kind.JAVASCRIPT}
            self.notes.append("javascript subscribers are skipped: Node.js or the JavaScript client is not installed")

    async def start(self, directory: Path) -> None:
        if self._there is not None:
            self.address = self._there
            try:
                _, writer = await asyncio.open_connection(*self.address)
            except OSError as error:
                raise ConfigInvalid("--url", self._url, f"does not answer: {error}") from error
            writer.close()
            return
        self.node = Node(directory, self._command, self._settings)
        await self.node.start()
        self.address = self.node.address

    async def stop(self) -> None:
        if self.node is not None:
            self.node.freeze(False)
            await self.node.kill()

    def rules(self, plan: Plan) -> Rules:
        if self.node is None:
            return Rules()  # its limits are not known here
        return Rules(
            log_messages_max=LIMITS["log_messages_max"],
            log_age_ms_max=LIMITS["log_age_ms_max"],
            in_flight_max=sum(publisher.in_flight for publisher in plan.publishers),
            knows_restarts=True,
            keeps_journal=bool((self._settings or {}).get("node.data_directory")),
        )

    def subscriber(self, setup: SubscriberSetup) -> Subscriber:
        mine, url = setup.mine, f"ws://127.0.0.1:{setup.port}"
        if mine.kind is Kind.JAVASCRIPT:
            return JavascriptSubscriber(mine, url, setup.checker, setup.trace, setup.clock)
        if mine.kind in (Kind.PYTHON, Kind.SAVED):
            return ClientSubscriber(mine, url, setup.checker, setup.trace, setup.clock, setup.directory)
        return RawSubscriber(mine, url, setup.checker, setup.trace, setup.clock)

    def publishers(self, plan: Plan, ports: list[int], context: CheckContext, clock: Clock) -> list[Publishing]:
        return [
            Publisher(plan, mine, f"ws://127.0.0.1:{port}", context, clock)
            for mine, port in zip(plan.publishers, ports, strict=True)
        ]
