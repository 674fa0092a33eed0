"""Checks each answer of a user's authorizer before the node uses it.

Pure. An answer, which may be a subclass or have been changed after construction, is copied into a plain Grant or Refusal.
The error names the first wrong field, without its value, which could contain a token.
"""

from __future__ import annotations

from ..codes import Code
from ..config.dispatch import DISPATCH_ISSUER, DISPATCH_PREFIX
from ..errors import AuthorizerFailed
from .rights import Grant, Refusal, Rule


def check_connect(answer: object) -> Grant | Refusal:
    """A plain copy of the answer; raises AuthorizerFailed, which names the field."""
    try:
        if isinstance(answer, Grant):
            rules = (Rule(rule.pattern, rule.actions, rule.verdict) for rule in answer.rules)
            # a user's authorizer sets none of these
            source, authority = getattr(answer, "source", None), getattr(answer, "authority", "authorizer")
            configured = getattr(answer, "configured", 0)
            ends = (answer.expires_ms, answer.token_id, answer.tenant, source, authority, configured)
            return Grant(answer.identity, rules, *ends)
        if isinstance(answer, Refusal):
            return Refusal(answer.reason, answer.code)
    except Exception as error:  # a field of a user's value may raise anything when it is read
        raise AuthorizerFailed(str(error)) from error
    raise AuthorizerFailed(f"answered a {type(answer).__name__}: expected Grant or Refusal")


AUTHORITY = f"jwt:{DISPATCH_ISSUER}"
"""The authority of receivers' tokens. No configured issuer can have this name, and a user's authorizer vouches only for itself."""


def refuse_reserved(answer: Grant | Refusal) -> Grant | Refusal:
    """The answer of an access mode; refused if its identity or source is reserved for dispatch."""
    if isinstance(answer, Grant) and answer.identity.startswith(DISPATCH_PREFIX) and answer.authority != AUTHORITY:
        return Refusal(f"identities that begin with {DISPATCH_PREFIX} are dispatch's own", Code.CONNECT_REFUSED)
    return answer


def check_selector(answer: object) -> bool:
    """Check that the answer is True or False; raises AuthorizerFailed."""
    if not isinstance(answer, bool):
        raise AuthorizerFailed(f"answered a {type(answer).__name__}: expected True or False")
    return answer
