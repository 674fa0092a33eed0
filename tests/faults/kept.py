"""The messages that a node has of a subject, page by page."""

from __future__ import annotations

import json
from typing import Any, Protocol

import aiohttp


class Place(Protocol):
    """The address of a node."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


async def read_all(node: Place, subject: str) -> list[tuple[str, Any]]:
    """Position and content of every message that the node has of a subject, in order."""
    found: list[tuple[str, Any]] = []
    query = {"subject": subject, "last": "1000000", "limit": "1000"}
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"http://{node.host}:{node.port}/v1/messages", params=query) as answer:
                items = json.loads(await answer.text())
                query = {"subject": subject, "after": answer.headers["Godwit-Position"], "limit": "1000"}
            found += [(item["at"], item["content"]) for item in items if "message" in item]
            if not items:
                return found
