"""Sends webhooks: one POST each, with the delivery's event as its body."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from yarl import URL

from ...errors import RenderInterrupted, RequestRefused
from ...model import Outcome, Result, Shipment
from ...pure.sandbox import read_result
from ..letter import Letter, Letters, ReadLetter, preparing
from ..outcomes import make_outcome
from .custom import make_preset
from .envelope import SignBytes, make_body, make_headers
from .http import HttpPoster

INTERRUPTIONS_MAX = 2
Render = Callable[[str, str, dict[str, Any]], Awaitable[str]]
"""Renders a Liquid text with names; raises RequestRefused, or RenderInterrupted if another try may succeed."""


class WebhookSender:
    """Sends webhooks. Open it in the event loop that uses it."""

    def __init__(
        self,
        read_letter: ReadLetter,
        poster: HttpPoster,
        render: Render,
        sign_bytes: SignBytes,
        *,
        now_ms: Callable[[], int],
    ) -> None:
        self._letters = Letters(read_letter)
        self._poster, self._now_ms = poster, now_ms
        self._render, self._sign_bytes = render, sign_bytes

    async def close(self) -> None:
        await self._poster.close()

    async def send(self, batch: Sequence[Shipment]) -> Sequence[Outcome]:
        """Send one webhook. Raises NotSent and cancellation."""
        return [await self._send(shipment) for shipment in batch]

    async def _send(self, shipment: Shipment) -> Outcome:
        if (sandbox := read_result("webhook", shipment.target.value)) is not None:
            return self._tell(shipment, sandbox, "sandbox")
        letter = await self._letters.find(shipment)
        if letter is None:
            return self._tell(shipment, Result.CONTENT, "the notification is gone")
        if not shipment.target.secret:
            return self._tell(
                shipment, Result.CONTENT, "its secret cannot be read: delete the address and create it again"
            )
        if shipment.target.format:
            return await self._send_custom(shipment, letter)
        body = make_body(shipment, letter)
        headers = make_headers(shipment, letter, body, self._now_ms() // 1_000, self._sign_bytes)
        return self._tell(shipment, *await self._post(shipment, body, headers))

    async def _send_custom(self, shipment: Shipment, letter: Letter) -> Outcome:
        form = msgspec.json.decode(shipment.target.format, type=dict[str, Any])
        content = msgspec.json.decode(letter.content, type=dict[str, Any])
        if preset := form.get("preset"):
            body = msgspec.json.encode(make_preset(preset, content, form.get("fields") or {}))
        else:
            names = {"notification": letter.notification, "receiver": shipment.target.receiver, "content": content}
            try:
                with preparing():
                    body = (await self._render(shipment.tenant, form["body"], names)).encode()
                msgspec.json.decode(body)
            except (RequestRefused, msgspec.DecodeError) as error:
                # An interruption may be a busy machine's; a text that is interrupted twice is its own.
                may_retry = isinstance(error, RenderInterrupted) and shipment.attempt < INTERRUPTIONS_MAX
                result = Result.TEMPORARY if may_retry else Result.CONTENT
                detail = f"the body does not render: {error!s:.200}"
                return replace(self._tell(shipment, result, detail), rendered=False)
        headers = {**(form.get("headers") or {}), "Content-Type": "application/json"}
        outcome = self._tell(shipment, *await self._post(shipment, body, headers))
        return outcome if form.get("preset") else replace(outcome, rendered=True)

    async def _post(self, shipment: Shipment, body: bytes, headers: dict[str, str]) -> tuple[Result, str, int]:
        return await self._poster.post(shipment.target.value, body, headers, tenant=shipment.tenant)

    def _tell(self, shipment: Shipment, result: Result, detail: str, after_ms: int = 0) -> Outcome:
        return make_outcome(shipment, result, detail, self._now_ms(), random.random(), after_ms)


def host_of(shipment: Shipment) -> tuple[str, str]:
    """The lane of a webhook: its tenant and host."""
    try:
        return shipment.tenant, URL(shipment.target.value).host or ""
    except ValueError:
        return shipment.tenant, ""
