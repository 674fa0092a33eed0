"""Sends webhooks: one POST each, with the delivery's event as its body."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from yarl import URL

from ...model import Outcome, Result, Shipment
from ...pure.sandbox import read_result
from ..letter import Letters, ReadLetter
from ..outcomes import make_outcome
from .envelope import make_body, make_headers
from .http import HttpPoster


class WebhookSender:
    """The channel's way out. Open it in the event loop that uses it."""

    def __init__(self, read_letter: ReadLetter, poster: HttpPoster, *, now_ms: Callable[[], int]) -> None:
        self._letters = Letters(read_letter)
        self._poster, self._now_ms = poster, now_ms

    async def close(self) -> None:
        await self._poster.close()

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        """Raises nothing but cancellation."""
        return [await self._send(shipment) for shipment in batch]

    async def _send(self, shipment: Shipment) -> Outcome:
        if (sandbox := read_result("webhook", shipment.target.value)) is not None:
            return self._tell(shipment, sandbox, "sandbox")
        letter = await self._letters.find(shipment.key.nid)
        if letter is None:
            return self._tell(shipment, Result.CONTENT, "the notification is gone")
        body = make_body(shipment, letter)
        headers = make_headers(shipment, body, self._now_ms() // 1_000)
        return self._tell(shipment, *await self._poster.post(shipment.target.value, body, headers))

    def _tell(self, shipment: Shipment, result: Result, detail: str, after_ms: int = 0) -> Outcome:
        return make_outcome(shipment, result, detail, self._now_ms(), random.random(), after_ms)


def host_of(shipment: Shipment) -> tuple[str, str]:
    """The lane of a webhook: its tenant and host."""
    try:
        return shipment.tenant, URL(shipment.target.value).host or ""
    except ValueError:
        return shipment.tenant, ""
