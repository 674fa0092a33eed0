"""What an identity may do, as an authorizer says it: rules over patterns, checked here, judged by the engine.

Pure. The engine holds the rules compiled and judges every command by itself: the most specific rule decides, ties deny,
a pattern is granted whole or refused; `ask` brings the question back to the authorizer, once for each selector.
Invariant: a Rule or Grant that exists is one the engine accepts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ..codes import Code, is_close
from ..limits import CLIENT_BYTES_MAX
from ..model import NUMBER_MAX
from ..subject import check_pattern

IDENTITY_BYTES_MAX = CLIENT_BYTES_MAX
RULES_MAX = 10_000


class Action(StrEnum):
    """What a rule is about."""

    SUBSCRIBE = "subscribe"
    PUBLISH = "publish"
    BOTH = "both"


class Verdict(StrEnum):
    """What a rule says: yes, no, or ask the authorizer when it comes up."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; raises ValueError where its pattern is none."""

    pattern: str
    actions: Action
    verdict: Verdict

    def __post_init__(self) -> None:
        check_pattern(self.pattern)
        Action(self.actions)
        Verdict(self.verdict)

    @classmethod
    def allow(cls, pattern: str, actions: str = "both") -> Rule:
        return cls(pattern, Action(actions), Verdict.ALLOW)

    @classmethod
    def deny(cls, pattern: str, actions: str = "both") -> Rule:
        return cls(pattern, Action(actions), Verdict.DENY)

    @classmethod
    def ask(cls, pattern: str, actions: str = "both") -> Rule:
        return cls(pattern, Action(actions), Verdict.ASK)


@dataclass(frozen=True, slots=True)
class Grant:
    """A yes: who this is, what they may do (what no rule allows is denied), and until when (Unix ms; None: no end).

    A token id, where there is one, is what a revocation names. A tenant, where there is one, is whose customer this is: the limits
    `…_per_tenant_max` count all its identities together.
    The identity scopes idempotence keys and stands in logs and the connections list; it must hold no secret.
    """

    identity: str
    rules: tuple[Rule, ...] = ()
    expires_ms: int | None = None
    token_id: str | None = None
    tenant: str = ""

    def __init__(
        self,
        identity: str,
        rules: Iterable[Rule] = (),
        expires_ms: int | None = None,
        token_id: str | None = None,
        tenant: str = "",
    ) -> None:
        object.__setattr__(self, "identity", identity)
        object.__setattr__(self, "rules", tuple(rules))
        object.__setattr__(self, "expires_ms", expires_ms)
        object.__setattr__(self, "token_id", token_id)
        object.__setattr__(self, "tenant", tenant)
        if not 1 <= len(identity.encode()) <= IDENTITY_BYTES_MAX or not identity.isprintable():
            raise ValueError(f"an identity is 1 to {IDENTITY_BYTES_MAX} bytes of printable text")
        if len(tenant.encode()) > IDENTITY_BYTES_MAX or not tenant.isprintable():
            raise ValueError(f"a tenant is at most {IDENTITY_BYTES_MAX} bytes of printable text")
        if len(self.rules) > RULES_MAX or not all(isinstance(rule, Rule) for rule in self.rules):
            raise ValueError(f"a grant holds at most {RULES_MAX:,} rules")
        if expires_ms is not None and not 0 <= expires_ms <= NUMBER_MAX:
            raise ValueError("expires_ms is Unix time in milliseconds")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A no to a connection: its closing code and a sentence for the client."""

    reason: str = "the authorizer refused this client"
    code: Code = Code.CONNECT_REFUSED

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", Code(self.code))
        if not is_close(self.code):
            raise ValueError(f"{self.code} is no closing code: a connection is refused with 4000-4099 or 4200-4299")
