"""Verifies a token: signature, algorithm, time and audience.

Pure but for the clock. Unverified contents of a token are used for two purposes only: to choose a configured issuer, and
one of its keys. `jku`, `x5u`, `jwk` and similar headers are ignored. The library checks the signature, with algorithms
that both the issuer and the key allow. Invariant: a client receives sentences of this file, never those of the library.
"""

from __future__ import annotations

import binascii
import time
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Any

import jwt
import msgspec
from jwt.exceptions import InvalidJTIError, InvalidSubjectError

from ...config.tree import IssuerConfig
from .claims import ClaimsInvalid
from .keys import Key, KeyRing

TOKEN_BYTES_MAX = 16_384
HEADER_BYTES_MAX = 2_048
KEYS_TRIED_MAX = 8
EARLY_S_MAX = 60
"""A token that begins within this time may be sent again; one that begins later is refused for good."""
SIGNATURE_WRONG = "the token's signature is wrong: the token was changed, or not signed by its issuer"


class TokenRefused(Exception):
    """The token is not valid; the sentence is for the client. `is_expired`: it was valid before. `is_early`: it becomes
    valid within a minute. `may_be_key`: another key of its issuer may have signed it.
    """

    def __init__(
        self, reason: str, *, is_expired: bool = False, is_early: bool = False, may_be_key: bool = False
    ) -> None:
        self.is_expired, self.is_early, self.may_be_key = is_expired, is_early, may_be_key
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Outline:
    """The unverified issuer, key id and algorithm of a token."""

    algorithm: str
    key_id: str | None
    issuer: str


def read_outline(token: str) -> Outline:
    """Read the unverified header and issuer, with bounded work for any input; raises TokenRefused."""
    if len(token) > TOKEN_BYTES_MAX:
        raise TokenRefused(f"the token is longer than {TOKEN_BYTES_MAX:,} bytes")
    parts = token.split(".")
    if len(parts) != 3 or not all(parts) or not token.isascii():
        raise TokenRefused("this is not a signed token, or only a part of one")
    if len(parts[0]) > HEADER_BYTES_MAX:
        raise TokenRefused(f"the token's header is longer than {HEADER_BYTES_MAX:,} bytes")
    header, claims = _read_object(parts[0], "header"), _read_object(parts[1], "claims")
    _read_part(parts[2], "signature")
    algorithm, key_id, issuer = header.get("alg"), header.get("kid"), claims.get("iss")
    if not isinstance(algorithm, str) or not isinstance(key_id, str | None) or not isinstance(issuer, str):
        raise TokenRefused("the token names no algorithm or no issuer")
    if "crit" in header or "b64" in header:
        raise TokenRefused("the token requires an extension (header crit or b64) that this node does not support")
    return Outline(algorithm, key_id, issuer)


def verify(token: str, outline: Outline, issuer: IssuerConfig, ring: KeyRing) -> dict[str, Any]:
    """The claims, if one of the issuer's keys signed them and they are valid now; raises TokenRefused."""
    return verify_by(token, outline, issuer, ring)[0]


def verify_by(token: str, outline: Outline, issuer: IssuerConfig, ring: KeyRing) -> tuple[dict[str, Any], Key]:
    """The claims, and the issuer's key that signed them; raises TokenRefused."""
    if outline.algorithm not in issuer.algorithms:
        raise TokenRefused("the token's algorithm is not one of its issuer's")
    keys = ring.find(outline.algorithm, outline.key_id)[:KEYS_TRIED_MAX]
    for key in keys:
        try:
            return _decode(token, outline.algorithm, key.material, issuer), key
        except jwt.InvalidSignatureError:
            continue
        except jwt.ExpiredSignatureError as error:
            raise TokenRefused("the token has expired", is_expired=True) from error
        except jwt.ImmatureSignatureError as error:
            is_early = _begins_s(token) - time.time() <= EARLY_S_MAX
            raise TokenRefused("the token is not valid yet", is_early=is_early) from error
        except (jwt.PyJWTError, ClaimsInvalid, ValueError, TypeError, OverflowError, RecursionError) as error:
            raise TokenRefused(_word(error, issuer)) from error
    raise TokenRefused(SIGNATURE_WRONG if keys else "no key of the token's issuer matches it", may_be_key=True)


def _begins_s(token: str) -> float:
    """`nbf` of a token whose signature is right."""
    begins = _read_object(token.split(".")[1], "claims").get("nbf")
    return float(begins) if isinstance(begins, int | float) else 0.0


def _word(error: Exception, issuer: IssuerConfig) -> str:
    """The library's error as a sentence for the client."""
    match error:
        case ClaimsInvalid():
            return str(error)
        case jwt.MissingRequiredClaimError():
            return f"the token lacks the claim {error.claim}"
        case jwt.InvalidAudienceError() if issuer.audience:
            return "the token is for another audience (aud)"
        case jwt.InvalidAudienceError():
            return "the token is for an audience (aud), and none is configured for its issuer"
        case jwt.InvalidIssuerError() | jwt.InvalidIssuedAtError() | InvalidSubjectError() | InvalidJTIError():
            return "one of the token's claims iss, sub, iat and jti has the wrong type"
    return "the token is damaged, or one of its claims exp and nbf is not a number of seconds"


def _decode(token: str, algorithm: str, material: Any, issuer: IssuerConfig) -> dict[str, Any]:
    # `iat` says when a token was made, by a clock that may be ahead; what it may begin and end is said by `nbf` and `exp` (RFC 7519, 4.1.6)
    options: Any = {
        "require": ["exp", "iss"],
        "strict_aud": False,
        "enforce_minimum_key_length": False,
        "verify_iat": False,
    }
    decoded: dict[str, Any] = jwt.decode(
        token,
        material,
        algorithms=[algorithm],
        audience=issuer.audience or None,
        issuer=issuer.issuer,
        leeway=issuer.leeway_ms / 1000,
        options=options,
    )
    made = decoded.get("iat", 0)
    if isinstance(made, bool) or not isinstance(made, int | float):
        raise jwt.InvalidIssuedAtError
    return decoded


def _read_object(part: str, name: str) -> dict[str, Any]:
    try:
        read = msgspec.json.decode(_read_part(part, name))
    except (ValueError, RecursionError) as error:
        raise TokenRefused(f"the token is damaged: its {name} cannot be read") from error
    if not isinstance(read, dict):
        raise TokenRefused(f"the token is damaged: its {name} cannot be read")
    return read


def _read_part(part: str, name: str) -> bytes:
    """The bytes of one part. It must be canonical base64url without padding (RFC 7515, 2); raises TokenRefused."""
    try:
        read = b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise TokenRefused(f"the token is damaged: its {name} cannot be read") from error
    if urlsafe_b64encode(read).rstrip(b"=") != part.encode():
        raise TokenRefused(f"the token is damaged: its {name} cannot be read")
    return read
