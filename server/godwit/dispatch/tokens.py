"""The signing key of dispatch: tokens for receivers and for dispatch itself, and the public keys that nodes trust.

Owns the key file (0600). A receiver's token names its inbox and nothing else. Invariant: a token that this key did not
sign, or that has expired, identifies nobody.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from ..config.dispatch import DISPATCH_ISSUER
from ..errors import ConfigInvalid
from .codes import DispatchCode
from .errors import RequestRefused
from .pure.subjects import inbox_subject, live_subject

SERVICE = "/service"
"""The subject of dispatch's own token. No receiver can have it: theirs are TENANT/RECEIVER, and a tenant's name is never empty."""
SERVICE_S = 3_600
KNOWN_MAX = 10_000
"""Tokens that are remembered: verifying a signature takes longer than most requests of a receiver."""
IDENTITY_BYTES_MAX = 240
"""The node's limit of 256, without the prefix that it puts before an identity of dispatch."""
UNSUBSCRIBE = b"unsubscribe:"
"""A prefix of the signed bytes, so that no other signature of this key is valid as such a token."""


class Leaving(msgspec.Struct, frozen=True, array_like=True):
    """The content of an unsubscribe link: the category, and the address as a digest, so that the link works as long as a
    suppression, even after the receiver was deleted.
    """

    tenant: str
    channel: str
    digest: str
    category: str


class LeavingAddress(msgspec.Struct, frozen=True, array_like=True):
    """The content of links of earlier versions: the number of an address. They are in e-mail that was sent, and must work for long."""

    aid: int
    category: str


class SigningKey:
    """One key, from its file or new. `now_s` is the wall clock."""

    def __init__(self, file: Path, now_s: Callable[[], float] = time.time) -> None:
        """Raises ConfigInvalid if the file has no Ed25519 key."""
        self._now_s = now_s
        self._key = _read_or_make(file)
        self._known: OrderedDict[bytes, tuple[int, tuple[str, str]]] = OrderedDict()
        """Valid tokens by digest: end (Unix s), and tenant and receiver."""
        private = self._key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        self._mac_key = hmac.digest(private, b"bounces", "sha256")
        public = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.key_id = hashlib.sha256(public).hexdigest()[:16]
        encoded = base64.urlsafe_b64encode(public).rstrip(b"=").decode()
        key = {"kty": "OKP", "crv": "Ed25519", "x": encoded, "kid": self.key_id, "alg": "EdDSA", "use": "sig"}
        self.key_set: bytes = msgspec.json.encode({"keys": [key]})
        """The public keys, as a JWK Set."""
        self.webhook_key = "whpk_" + base64.b64encode(public).decode()
        """The public key that verifies webhooks, as Standard Webhooks write it."""

    def sign_receiver(self, tenant: str, receiver: str, valid_ms: int) -> tuple[str, int]:
        """A token for one inbox, and its end (Unix ms)."""
        subject = inbox_subject(tenant, receiver)
        end_s = int(self._now_s() + valid_ms / 1000)
        owner = {"sub": _identify(subject), "godwit_tenant": tenant, "godwit_receiver": receiver}
        return self._sign(owner, {"subscribe": [subject, f"{subject}/**"]}, end_s), end_s * 1000

    def sign_live(self, tenant: str, valid_ms: int) -> tuple[str, int]:
        """A token for the live counts of a tenant, and its end (Unix ms). It belongs to no receiver."""
        end_s = int(self._now_s() + valid_ms / 1000)
        subject = live_subject(tenant)
        return self._sign({"sub": f"/live{subject}"}, {"subscribe": [f"{subject}/**"]}, end_s), end_s * 1000

    def sign_bytes(self, content: bytes) -> bytes:
        """An Ed25519 signature, for webhooks (v1a)."""
        return self._key.sign(content)

    def sign_unsubscribe(self, leaving: Leaving) -> str:
        """The token of an unsubscribe link. It contains no name and does not expire."""
        payload = _encode(msgspec.json.encode(leaving))
        return f"{payload}.{_encode(self._key.sign(UNSUBSCRIBE + payload.encode()))}"

    def read_unsubscribe(self, token: str) -> Leaving | LeavingAddress:
        """The content of an unsubscribe token; raises RequestRefused."""
        payload, _, signature = token.partition(".")
        try:
            self._key.public_key().verify(_decode(signature), UNSUBSCRIBE + payload.encode())
            said = _decode(payload)
            is_old = len(msgspec.json.decode(said, type=list[object])) == len(LeavingAddress.__struct_fields__)
            return msgspec.json.decode(said, type=LeavingAddress) if is_old else msgspec.json.decode(said, type=Leaving)
        except (InvalidSignature, ValueError, msgspec.MsgspecError) as error:
            raise RequestRefused(DispatchCode.UNSUBSCRIBE_TOKEN_INVALID) from error

    def make_mac(self, content: bytes) -> bytes:
        """A code of 80 bits that only this key can make, for short texts such as addresses for bounces."""
        return hmac.digest(self._mac_key, content, "sha256")[:10]

    async def sign_service(self) -> str:
        """Dispatch's own token, for its connections to nodes."""
        patterns = {"both": ["/$inbox/**", "/$dispatch/**"]}
        return self._sign({"sub": SERVICE}, patterns, int(self._now_s()) + SERVICE_S)

    def read_receiver(self, token: str) -> tuple[str, str]:
        """Tenant and receiver of a token; raises RequestRefused. For one event loop."""
        digest = hashlib.sha256(
            token.encode(errors="surrogateescape")
        ).digest()  # a header may have other bytes than UTF-8
        end_s, owner = self._known.get(digest, (0, ("", "")))
        if end_s > self._now_s():
            self._known.move_to_end(digest)
            return owner
        end_s, owner = self._verify_receiver(token)
        self._known[digest] = end_s, owner
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)
        return owner

    def _verify_receiver(self, token: str) -> tuple[int, tuple[str, str]]:
        """The end of a token (Unix s), and its tenant and receiver; raises RequestRefused."""
        try:
            claims: dict[str, Any] = jwt.decode(
                token, self._key.public_key(), ["EdDSA"], issuer=DISPATCH_ISSUER, options={"require": ["exp", "sub"]}
            )
        except (jwt.PyJWTError, ValueError) as error:  # ValueError: a header with bytes that are not UTF-8
            raise RequestRefused(DispatchCode.RECEIVER_TOKEN_INVALID) from error
        tenant, receiver = claims.get("godwit_tenant"), claims.get("godwit_receiver")
        if not isinstance(tenant, str) or not isinstance(receiver, str):
            raise RequestRefused(DispatchCode.RECEIVER_TOKEN_INVALID)
        return int(claims["exp"]), (tenant, receiver)

    def _sign(self, owner: dict[str, str], allow: dict[str, list[str]], end_s: int) -> str:
        claims = {"iss": DISPATCH_ISSUER, **owner, "exp": end_s, "permissions": {"allow": allow}}
        return jwt.encode(claims, self._key, "EdDSA", headers={"kid": self.key_id})


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))


def _read_or_make(file: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(file.read_bytes(), None)
    except FileNotFoundError:
        key = Ed25519PrivateKey.generate()
        write_private(file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    except ValueError as error:
        raise ConfigInvalid("node.data_directory", str(file), "does not hold a private key (PEM)") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigInvalid("node.data_directory", str(file), "does not hold an Ed25519 key")
    return key


def _identify(subject: str) -> str:
    """Whose inbox a subject is, for the node: its path, or a digest of it where the node takes no identity so long."""
    path = subject.removeprefix("/$inbox/")
    return path if len(path) <= IDENTITY_BYTES_MAX else f"sha256:{hashlib.sha256(path.encode()).hexdigest()}"


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner may read; it is replaced as a whole."""
    fresh = file.with_suffix(".new")
    descriptor = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as output:
        output.write(content)
        output.flush()
        os.fsync(output.fileno())
    fresh.replace(file)
