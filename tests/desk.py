"""An authorizer for tests with fixed tokens; the name of a token decides its behaviour."""

from __future__ import annotations

import asyncio
import time

from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal, Rule, SelectorQuestion


class Desk(Authorizer):
    """Allows everybody to read the news, and asks about orders: the first may be published."""

    def __init__(self) -> None:
        self.asked: list[SelectorQuestion] = []

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        match question.token:
            case "late":
                await asyncio.sleep(3600)
            case "failing":
                raise RuntimeError("no database")
            case "wrong answer":
                return True  # type: ignore[return-value]  # what a careless authorizer does
            case "stranger":
                return Refusal("nobody knows you")
            case "short":
                return Grant("ann", [Rule.allow("/**")], expires_ms=time.time_ns() // 1_000_000 + 1_500)
            case None:
                return Grant("guest", [Rule.allow("/news/**", "subscribe")])
        return Grant(str(question.token), [Rule.allow("/news/**"), Rule.deny("/news/secret"), Rule.ask("/orders/**")])

    async def publish(self, question: SelectorQuestion) -> bool:
        self.asked.append(question)
        return question.selector == "/orders/1"
