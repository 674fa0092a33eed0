"""The interface an authorizer implements: four questions, answered in async Python.

An authorizer is asked when a client connects or renews its token, and for what its rules say `ask`; never for a message.
What it answers compiles into rules that the engine judges by itself. An authorizer that raises, is late (see
`access.authorizer_timeout_ms`) or answers something else has allowed nothing: it fails closed, and the client is told to try again.

    class Desk(Authorizer):
        async def connect(self, question):
            user = await lookup(question.token)
            if user is None:
                return Refusal("no such user", Code.TOKEN_INVALID)
            return Grant(user.name, [Rule.allow("/news/**", "subscribe"), Rule.ask("/orders/**")])

        async def publish(self, question):
            return await may_trade(question.identity, question.selector)

Name it in the configuration: `[access] mode = "custom"`, `authorizer = "desk:Desk"`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from .rights import Grant, Refusal


@dataclass(frozen=True, slots=True)
class ConnectQuestion:
    """May this client come in, or go on with a new token? `token` is None where it showed none; it is never logged."""

    connection: int
    token: str | None = field(repr=False)
    client: str | None
    address: str
    is_renewal: bool = False
    certificate: bytes | None = field(default=None, repr=False)
    """The client's verified TLS certificate (DER), where `tls.client_identity` asks who it names."""
    certificate_identity: str | None = None
    """Whom it names, by that setting."""


@dataclass(frozen=True, slots=True)
class SelectorQuestion:
    """May this identity do this? `selector` is a subject, or for a subscription possibly a pattern, meant whole."""

    connection: int
    identity: str
    selector: str
    tenant: str = ""


class Authorizer(ABC):
    """Subclass it, or pass any object with these methods. One object serves the whole node, on a thread and event loop of its own."""

    @abstractmethod
    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        """Who is it and what may they do?"""

    async def update_token(self, question: ConnectQuestion) -> Grant | Refusal:
        """A connected client shows another token; the answer replaces its rights. As connect, unless overridden."""
        return await self.connect(question)

    async def subscribe(self, question: SelectorQuestion) -> bool:
        """Asked where the most specific rule for a subscription says `ask`."""
        return False

    async def publish(self, question: SelectorQuestion) -> bool:
        """Asked where the most specific rule for a publish says `ask`."""
        return False

    def ask_again(self, identity: str | None = None, tenant: str | None = None) -> None:
        """Call it, from any thread, when your answers to `subscribe` and `publish` may have changed.

        It is about one identity (of a tenant), or about everybody.
        The node forgets those answers and asks again for what live subscriptions stand on. It puts its own function in this
        one's place before `start`; an object that is not a subclass is given it as an attribute."""
        return None

    async def start(self) -> None:
        """Called before the node listens: open what you need; raising keeps the node from starting."""
        return None

    async def stop(self) -> None:
        """Called after the node has drained."""
        return None
