"""Whether a token was signed by its issuer and holds now: signature, algorithm, time, audience.

Pure but for the clock. What stands in a token unverified serves two things only: to choose the issuer among those configured,
and the key among that issuer's. `jku`, `x5u`, `jwk` and the like are never looked at. The signature is checked by the library,
with the algorithms that issuer and key both allow.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from typing import Any

import jwt
import msgspec

from ...config.tree import IssuerConfig
from .claims import ClaimsInvalid
from .keys import KeyRing

TOKEN_BYTES_MAX = 16_384
HEADER_BYTES_MAX = 2_048
KEYS_TRIED_MAX = 8


class TokenRefused(Exception):
    """A token that is none of ours, with the sentence for the client. `is_expired`: it was once."""

    def __init__(self, reason: str, *, is_expired: bool = False) -> None:
        self.is_expired = is_expired
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Outline:
    """What a token says of itself before anything is verified."""

    algorithm: str
    key_id: str | None
    issuer: str


def read_outline(token: str) -> Outline:
    """Bounded work whatever the token; raises TokenRefused."""
    if len(token) > TOKEN_BYTES_MAX:
        raise TokenRefused(f"the token is longer than {TOKEN_BYTES_MAX:,} bytes")
    parts = token.split(".")
    if len(parts) != 3 or not all(parts) or not token.isascii():
        raise TokenRefused("this is no signed token")
    if len(parts[0]) > HEADER_BYTES_MAX:
        raise TokenRefused(f"the token's header is longer than {HEADER_BYTES_MAX:,} bytes")
    header, claims = _read_object(parts[0]), _read_object(parts[1])
    algorithm, key_id, issuer = header.get("alg"), header.get("kid"), claims.get("iss")
    if not isinstance(algorithm, str) or not isinstance(key_id, str | None) or not isinstance(issuer, str):
        raise TokenRefused("the token names no algorithm or no issuer")
    if "crit" in header or "b64" in header:
        raise TokenRefused("the token asks for an extension that is not known here")
    return Outline(algorithm, key_id, issuer)


def verify(token: str, outline: Outline, issuer: IssuerConfig, ring: KeyRing) -> dict[str, Any]:
    """The claims, signed by one of the issuer's keys and valid now; raises TokenRefused."""
    if outline.algorithm not in issuer.algorithms:
        raise TokenRefused("the token's algorithm is not one of its issuer's")
    keys = ring.find(outline.algorithm, outline.key_id)[:KEYS_TRIED_MAX]
    for key in keys:
        try:
            return _decode(token, outline.algorithm, key.material, issuer)
        except jwt.InvalidSignatureError:
            continue
        except jwt.ExpiredSignatureError as error:
            raise TokenRefused("the token has expired", is_expired=True) from error
        except (jwt.PyJWTError, ClaimsInvalid, ValueError, TypeError, OverflowError, RecursionError) as error:
            # the library's sentences name claims and no secrets
            raise TokenRefused(str(error)[:200] or "the token is not valid") from error
    raise TokenRefused("the token was not signed by its issuer" if keys else "no key of its issuer fits the token")


def _decode(token: str, algorithm: str, material: Any, issuer: IssuerConfig) -> dict[str, Any]:
    options: Any = {"require": ["exp", "iss"], "strict_aud": False, "enforce_minimum_key_length": False}
    decoded: dict[str, Any] = jwt.decode(
        token,
        material,
        algorithms=[algorithm],
        audience=issuer.audience or None,
        issuer=issuer.issuer,
        leeway=issuer.leeway_ms / 1000,
        options=options,
    )
    return decoded


def _read_object(part: str) -> dict[str, Any]:
    try:
        read = msgspec.json.decode(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise TokenRefused("this is no signed token") from error
    if not isinstance(read, dict):
        raise TokenRefused("this is no signed token")
    return read
