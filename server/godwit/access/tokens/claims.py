"""The claims of a verified token: its holder, its end, and its subjects.

Pure. The permissions claim names patterns by action, allowed or denied:

    "permissions": {"allow": {"subscribe": ["/news/**"], "publish": ["/rooms/ann/**"], "both": ["/desk/*"]},
                    "deny": {"both": ["/news/internal/**"]}}

Everything else is denied. The most specific pattern decides; at a tie deny wins. A pattern subscription is granted as a
whole or refused. Invariant: a claim in any other form is refused, never applied in part.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from ...config.forms import IDENTITY, TENANT
from ...config.tree import IssuerConfig
from ..rights import RULES_MAX, Action, Grant, Rule, Verdict
from ..templates import RuleTemplate, fill_template

TOKEN_ID_BYTES_MAX = 256
EXPIRES_S_MAX = 253_402_300_799
"""The last second of the year 9999: a later end is a mistake or an attack."""


class ClaimsInvalid(ValueError):
    """The signature of a token is right, but its claims are not; the sentence is for the client."""


def read_grant(claims: Mapping[str, Any], issuer: IssuerConfig, key: str = "") -> Grant:
    """The grant of a token's claims; `fingerprint` is that of the key that signed it. Raises ClaimsInvalid."""
    name = claims.get(issuer.identity_claim)
    if not isinstance(name, str) or not name:
        raise ClaimsInvalid(f"the claim {issuer.identity_claim} must name the holder")
    try:
        identity, tenant = issuer.identity_prefix + name, read_tenant(claims, issuer)
        return Grant(
            identity,
            read_rules(claims.get(issuer.permissions_claim), issuer, {IDENTITY: identity, TENANT: tenant}),
            # the one end of a token: the same when it is shown, remembered and held
            expires_ms=read_end_ms(claims.get("exp")) + issuer.leeway_ms,
            token_id=read_token_id(claims.get("jti")),
            tenant=tenant,
            source=name_source(issuer, key),
            authority=name_authority(issuer),
            configured=len(list_rules(issuer)),
        )
    except ClaimsInvalid:
        raise
    except ValueError as error:
        raise ClaimsInvalid(str(error)) from error


def name_source(issuer: IssuerConfig, key: str = "") -> str:
    """The source that vouched, as an order that withdraws a key names it: the issuer, a digest of the settings by which it
    reads a token, and the key, each on a line. After another reading, nothing that the issuer vouched for before counts.
    """
    reading = (
        sorted(issuer.algorithms),
        issuer.keys_url,
        issuer.audience,
        issuer.identity_claim,
        issuer.identity_prefix,
        issuer.tenant_claim,
        issuer.permissions_claim,
    )
    digest = hashlib.blake2b(repr(reading).encode(), digest_size=8).hexdigest()
    lines = (name_authority(issuer), digest, key) if key else (name_authority(issuer), digest)
    return "\n".join(lines)


def name_authority(issuer: IssuerConfig) -> str:
    """The authority, as an order that withdraws an issuer names it."""
    return f"jwt:{issuer.issuer}"


def read_end_ms(end_s: object) -> int:
    """`exp` in milliseconds."""
    if isinstance(end_s, bool) or not isinstance(end_s, int | float) or not math.isfinite(end_s):
        raise ClaimsInvalid("the claim exp must be a number of seconds")
    if not 0 <= end_s <= EXPIRES_S_MAX:
        raise ClaimsInvalid("the claim exp is out of range")
    return int(end_s * 1000)


def read_token_id(token_id: object) -> str | None:
    """`jti`, by which a token can be revoked."""
    if token_id is None:
        return None
    if not isinstance(token_id, str) or not 1 <= len(token_id.encode()) <= TOKEN_ID_BYTES_MAX:
        raise ClaimsInvalid(f"the claim jti must be a text of 1 to {TOKEN_ID_BYTES_MAX} bytes")
    return token_id


def read_tenant(claims: Mapping[str, Any], issuer: IssuerConfig) -> str:
    """The holder's tenant, if the issuer's tokens have one: then each must."""
    if not issuer.tenant_claim:
        return ""
    tenant = claims.get(issuer.tenant_claim)
    if not isinstance(tenant, str) or not tenant:
        raise ClaimsInvalid(f"the claim {issuer.tenant_claim} must name the tenant")
    return issuer.identity_prefix + tenant


def read_rules(permissions: object, issuer: IssuerConfig, names: Mapping[str, str]) -> list[Rule]:
    """The rules of a permissions claim, after the rules that all tokens of the issuer have. Raises ClaimsInvalid,
    ValueError.

    `names`: the values of {identity} and {tenant} in the issuer's patterns.
    """
    rules = [Rule.allow(fill_template(pattern, names), action) for pattern, action, _ in list_rules(issuer)]
    if permissions is None:
        return rules
    claim = issuer.permissions_claim
    if not isinstance(permissions, dict):
        raise ClaimsInvalid(f"the claim {claim} must be an object")
    for verdict, by_action in permissions.items():
        if verdict not in ("allow", "deny") or not isinstance(by_action, dict):
            raise ClaimsInvalid(f"the claim {claim} holds objects allow and deny, nothing else")
        for action, patterns in by_action.items():
            if action not in tuple(Action) or not isinstance(patterns, list):
                raise ClaimsInvalid(f"{claim}.{verdict} holds lists subscribe, publish and both, nothing else")
            if len(rules) + len(patterns) > RULES_MAX:
                raise ClaimsInvalid(f"the claim {claim} holds more than {RULES_MAX:,} patterns")
            rules += [_make_rule(pattern, action, verdict, claim) for pattern in patterns]
    return rules


def list_rules(issuer: IssuerConfig) -> list[RuleTemplate]:
    """The rules that all tokens of an issuer have from its configuration."""
    return [
        *((pattern, "subscribe", "allow") for pattern in issuer.subscribe),
        *((pattern, "publish", "allow") for pattern in issuer.publish),
    ]


def _make_rule(pattern: object, action: str, verdict: str, claim: str) -> Rule:
    if not isinstance(pattern, str):
        raise ClaimsInvalid(f"{claim}.{verdict}.{action} contains a value that is not text")
    return Rule(pattern, Action(action), Verdict(verdict))
