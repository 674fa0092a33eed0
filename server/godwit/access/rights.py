"""The permissions of an identity, as an authorizer grants them: rules over patterns, checked here, applied by the engine.

Pure. The engine compiles the rules and applies them to every command: the most specific rule decides, deny wins a tie, and a pattern is
granted as a whole. A rule `ask` makes the node ask the authorizer, once for each selector. Invariant: the engine accepts every Rule and
Grant that exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from ..codes import Code, is_close
from ..limits import CLIENT_BYTES_MAX
from ..model import NUMBER_MAX
from ..subject import check_pattern

IDENTITY_BYTES_MAX = CLIENT_BYTES_MAX
TOKEN_ID_BYTES_MAX = 1_024
REASON_CHARACTERS_MAX = 1_000
RULES_MAX = 10_000
EXPIRES_MS_MIN = 978_307_200_000
"""1 January 2001 in milliseconds: a smaller end of a grant that is not 0 is in seconds."""


class Action(StrEnum):
    """The actions that a rule covers."""

    SUBSCRIBE = "subscribe"
    PUBLISH = "publish"
    BOTH = "both"


class Verdict(StrEnum):
    """The effect of a rule: allow, deny, or ask the authorizer at the time."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Rule:
    """Allows, denies or asks about actions on the subjects of a pattern. Raises ValueError if the pattern is not valid."""

    pattern: str
    actions: Action
    verdict: Verdict

    def __post_init__(self) -> None:
        pattern = read_text("Rule.pattern", self.pattern)
        check_pattern(pattern)
        object.__setattr__(self, "pattern", pattern)
        object.__setattr__(self, "actions", Action(self.actions))
        object.__setattr__(self, "verdict", Verdict(self.verdict))

    @classmethod
    def allow(cls, pattern: str, actions: str = "both") -> Rule:
        """Allow `actions` ("subscribe", "publish" or "both"): `Rule.allow("/news/**", "subscribe")`."""
        return cls(pattern, Action(actions), Verdict.ALLOW)

    @classmethod
    def deny(cls, pattern: str, actions: str = "both") -> Rule:
        """Deny `actions` on the pattern, unless a more specific rule allows them."""
        return cls(pattern, Action(actions), Verdict.DENY)

    @classmethod
    def ask(cls, pattern: str, actions: str = "both") -> Rule:
        """Ask the authorizer (`subscribe`, `publish`) when a client wants it, and keep the answer."""
        return cls(pattern, Action(actions), Verdict.ASK)


@dataclass(frozen=True, slots=True)
class Grant:
    """Allows a connection: its identity, rules (everything else is denied), and end (Unix ms; None: no end). A revocation
    can name the token id. The limits `…_per_tenant_max` count all identities of a tenant together. The identity scopes
    idempotency keys and appears in logs and the connections list; it must not contain a secret.
    """

    identity: str
    rules: tuple[Rule, ...] = ()
    expires_ms: int | None = None
    token_id: str | None = None
    tenant: str = ""
    source: str | None = None
    """The source that vouched for it and may be removed while its holder is connected: `jwt:ISSUER` or `certificate`, and
    what belongs to it, such as the key, each on a line.
    """
    authority: str = "authorizer"
    """The authority that vouches for the identity: jwt:ISSUER, certificate, basic or anonymous. For a user's authorizer it
    is always `authorizer`.
    """
    configured: int = 0
    """How many of the rules, from the first one, come from the configuration. For a user's authorizer it is always 0."""

    def __init__(
        self,
        identity: str,
        rules: Iterable[Rule] = (),
        expires_ms: int | None = None,
        token_id: str | None = None,
        tenant: str = "",
        source: str | None = None,
        authority: str = "authorizer",
        configured: int = 0,
    ) -> None:
        identity, tenant = read_text("Grant.identity", identity), read_text("Grant.tenant", tenant)
        token_id = None if token_id is None else read_text("Grant.token_id", token_id)
        kept = tuple(islice(rules, RULES_MAX + 1))  # an endless iterator ends here
        if not 1 <= len(identity.encode()) <= IDENTITY_BYTES_MAX or not identity.isprintable():
            raise ValueError(f"Grant.identity must be 1 to {IDENTITY_BYTES_MAX} bytes of printable text")
        if len(tenant.encode()) > IDENTITY_BYTES_MAX or not tenant.isprintable():
            raise ValueError(f"Grant.tenant must be at most {IDENTITY_BYTES_MAX} bytes of printable text")
        if token_id is not None and len(token_id.encode()) > TOKEN_ID_BYTES_MAX:
            raise ValueError(f"Grant.token_id must be at most {TOKEN_ID_BYTES_MAX:,} bytes")
        if len(kept) > RULES_MAX:
            raise ValueError(f"Grant.rules holds more than {RULES_MAX:,} rules")
        for rule in kept:
            if not isinstance(rule, Rule):
                raise TypeError(f"Grant.rules holds a {type(rule).__name__}: expected only Rule")
        if expires_ms is not None and (not isinstance(expires_ms, int) or isinstance(expires_ms, bool)):
            raise TypeError(f"Grant.expires_ms is a {type(expires_ms).__name__}: expected an int or None")
        expires_ms = None if expires_ms is None else int.__index__(expires_ms)  # a subclass may say anything of itself
        if expires_ms and not EXPIRES_MS_MIN <= expires_ms <= NUMBER_MAX:
            raise ValueError("Grant.expires_ms must be Unix time in milliseconds")
        object.__setattr__(self, "identity", identity)
        object.__setattr__(self, "rules", kept)
        object.__setattr__(self, "expires_ms", expires_ms)
        object.__setattr__(self, "token_id", token_id)
        object.__setattr__(self, "tenant", tenant)
        object.__setattr__(self, "source", None if source is None else read_text("Grant.source", source))
        object.__setattr__(self, "authority", read_text("Grant.authority", authority))
        object.__setattr__(self, "configured", configured)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Refuses a connection: the close code and a sentence for the client."""

    reason: str = "the authorizer refused this client"
    code: Code = Code.CONNECT_REFUSED

    def __post_init__(self) -> None:
        reason = read_text("Refusal.reason", self.reason)
        object.__setattr__(self, "reason", reason[:REASON_CHARACTERS_MAX])
        object.__setattr__(self, "code", Code(self.code))
        if self.code < Code.CLOSED_BY_OPERATOR or not is_close(self.code):
            raise ValueError(f"{self.code} is not a closing code: expected 4000-4099 or 4200-4299")


def read_text(field: str, value: object) -> str:
    """The value as plain text; raises TypeError or ValueError, naming the field."""
    if not isinstance(value, str):
        raise TypeError(f"{field} is a {type(value).__name__}: expected text")
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{field} holds half a character (a lone surrogate)") from None
    return text
