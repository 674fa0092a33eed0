"""The interface of an audit: it receives batches of events, in async Python, on a thread of its own.

A slow audit loses the oldest events, and receives their number, or makes publishers wait (`audit.overflow`). It never
delays a delivery. If it raises an error, that batch counts as received; the error is logged and counted, and the next
batch follows.

    class Ledger(Audit):
        async def take(self, events):
            await store([event for event in events if isinstance(event, MessageEvent)])

Name it in the configuration: `[audit] plugins = ["ledger:Ledger"]`, or as an entry point of the group `godwit.audits`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ..engine import Draft
from .events import Event


class NodeFace:
    """The node, as an audit sees it: it can publish in the node's name."""

    def __init__(self, publish_many: Callable[[Sequence[Draft]], object]) -> None:
        self._publish_many = publish_many

    def publish(self, subject: str, content: Any) -> None:
        """Publish `content` as JSON on `subject`, as the node itself. Returns at once; raises TypeError if it is not JSON.

        self.node.publish("/alerts/refused", {"address": event.address})
        """
        self._publish_many([Draft(subject, json.dumps(content).encode())])


class Audit(ABC):
    """Receives what happens on a node. Subclass it, or pass any object with these methods.

    It runs on a thread and event loop of its own. `audit.overflow` decides what happens if it is slow: the oldest events are
    dropped, and a LostEvent counts them, or publishers wait.
    """

    node: NodeFace
    """Set before `start`."""

    @abstractmethod
    async def take(self, events: Sequence[Event]) -> None:
        """Take the next events, oldest first. The next batch follows when this call returns.

        If it raises, the batch counts as taken; the failure is logged and counted.

            async def take(self, events):
                await self.store.insert([event for event in events if isinstance(event, AccessEvent)])
        """

    async def start(self) -> None:
        """Called before the node listens. If it raises, the node does not start."""
        return None

    async def stop(self) -> None:
        """Called after the node has drained and, if there was time, after all earlier events were taken."""
        return None
