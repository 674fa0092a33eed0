"""The interface of an authorizer: four questions, answered in async Python.

The node asks when a client connects or renews its token, and where a rule says `ask`; never for a message. The engine compiles the
answer into rules and applies them itself. If an authorizer raises an error, exceeds `access.authorizer_timeout_ms` or returns
something else, nothing is allowed, and the client may try again.

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
    """A client that connects, or renews its token (`is_renewal`). `token` is None if it sent none; it is never logged.

    `connection`: the connection's number, as in logs. `client`: the name that the client gave itself. `address`: its IP address.
    """

    connection: int
    token: str | None = field(repr=False)
    client: str | None
    address: str
    is_renewal: bool = False
    certificate: bytes | None = field(default=None, repr=False)
    """The client's verified TLS certificate (DER), if `tls.client_identity` is set."""
    certificate_identity: str | None = None
    """The identity that the certificate names, by that setting."""
    certificate_chain: tuple[bytes, ...] = field(default=(), repr=False)
    """The other certificates that the client sent (DER), such as those of authorities between."""


@dataclass(frozen=True, slots=True)
class SelectorQuestion:
    """A subscription or a publish of an identity. `selector` is a subject; for a subscription it can be a pattern, granted as a whole."""

    connection: int
    identity: str
    selector: str
    tenant: str = ""


class Authorizer(ABC):
    """Decides who may connect and what they may do. Subclass it, or pass any object with these methods.

    One object serves the whole node, on a thread and event loop of its own. Each answer has `access.authorizer_timeout_ms`. A
    method that raises, or returns something else, denies its question with 4204, and the client retries.
    """

    @abstractmethod
    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        """Return a Grant with the client's identity and rules, or a Refusal with the reason and code that it receives.

        async def connect(self, question):
            user = self.users.get(question.token)
            return Grant(user.name, [Rule.allow("/news/**", "subscribe")]) if user else Refusal("unknown token")

        A reload of the configuration cancels a call that has not returned, and calls again.
        """

    async def update_token(self, question: ConnectQuestion) -> Grant | Refusal:
        """Return what `connect` returns, for a connected client that sends another token; its rights are replaced.

        Another identity than before ends the connection. The default calls `connect`.
        """
        return await self.connect(question)

    async def subscribe(self, question: SelectorQuestion) -> bool:
        """Return whether the identity may subscribe. Called if its most specific rule is `Rule.ask`."""
        return False

    async def publish(self, question: SelectorQuestion) -> bool:
        """Return whether the identity may publish. Called if its most specific rule is `Rule.ask`."""
        return False

    def ask_again(self, identity: str | None = None, tenant: str | None = None) -> None:
        """Call this, from any thread, when your answers to `subscribe` and `publish` may have changed.

        The node forgets its kept answers for one identity (of one tenant), or without arguments for all, and asks again for
        live subscriptions that depend on them. The node replaces this method before `start`; an object that is not a subclass
        receives it as an attribute.

            self.ask_again("ann", tenant="acme")
        """
        return None

    async def start(self) -> None:
        """Called before the node listens, to open connections and files. If it raises, the node does not start."""
        return None

    async def stop(self) -> None:
        """Called after the node has drained, to close them."""
        return None
