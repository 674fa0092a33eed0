"""Keys that verify signatures: read from PEM, JSON Web Key Sets, or files of secrets.

Pure: bytes in, keys out. The kind of a key decides its algorithms: a public key is never used as an HMAC secret, even if
a token's header asks for it. Invariant: a KeyRing holds at least one key, and none that is too weak for its use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import jwt
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
    load_ssh_public_key,
)

SECRET_BYTES = {"HS256": 32, "HS384": 48, "HS512": 64}
"""RFC 7518, 3.2: a secret is at least as long as the hash."""
RSA_BITS_MIN = 2048
RSA_BITS_MAX = 8192
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_RSA = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
KEYS_MAX = 100
_SSH = (b"ssh-rsa ", b"ssh-ed25519 ", b"ecdsa-sha2-")


@dataclass(frozen=True, slots=True)
class Key:
    """One key; `material` is the library's object, `algorithms` are those it may verify."""

    algorithms: frozenset[str]
    material: Any = field(repr=False)
    key_id: str | None = None

    @property
    def fingerprint(self) -> str:
        """A digest that distinguishes keys without revealing them."""
        public = self.material
        hashed = (
            public
            if isinstance(public, bytes)
            else public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        )
        return hashlib.sha256(b"godwit" + hashed).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class KeyRing:
    """All keys of one issuer."""

    keys: tuple[Key, ...]

    def find(self, algorithm: str, key_id: str | None) -> list[Key]:
        """The keys to try for a token. With a key id: the key of that id, and keys without an id."""
        fit = [key for key in self.keys if algorithm in key.algorithms]
        return fit if key_id is None else [key for key in fit if key.key_id in (None, key_id)]

    def knows(self, key_id: str | None) -> bool:
        """Whether the key id is known, so that another fetch cannot help."""
        return key_id is None or any(key.key_id in (None, key_id) for key in self.keys)


def read_keys(content: bytes) -> KeyRing:
    """The keys of a file as common tools write it; raises ValueError.

    A JWK Set, a JWK, a list of JWKs, PEM blocks (public keys, certificates) with any text between them, certificates by key id, public
    keys of OpenSSH, or secrets, one a line.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content.lstrip().startswith((b"{", b"[")):
        return read_key_set(content)
    if b"-----BEGIN " in content:
        return _make_ring(_read_pem(content))
    lines = [line.strip() for line in content.splitlines()]
    lines = [line for line in lines if line and not line.startswith(b"#")]
    if lines and all(line.startswith(_SSH) for line in lines):
        return _make_ring(_bind(load_ssh_public_key(line)) for line in lines)
    return _make_ring(_make_secret(line) for line in lines)


def read_key_set(content: bytes) -> KeyRing:
    """The keys of a JWK Set; raises ValueError. Keys of unknown kinds, or not for signatures, are ignored."""
    try:
        parsed = json.loads(content)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    if isinstance(parsed, dict) and parsed and all(_is_pem(text) for text in parsed.values()):
        return _make_ring(
            replace(key, key_id=name) for name, text in parsed.items() for key in _read_pem(text.encode())
        )
    rows = parsed.get("keys", [parsed]) if isinstance(parsed, dict) else parsed
    if not isinstance(rows, list) or len(rows) > KEYS_MAX:
        raise ValueError(f"holds no list of at most {KEYS_MAX} keys")
    return _make_ring(key for row in rows if (key := _read_key(row)) is not None)


def _is_pem(text: object) -> bool:
    return isinstance(text, str) and text.lstrip().startswith("-----BEGIN ")


def _make_ring(keys: Iterable[Key]) -> KeyRing:
    ring = KeyRing(tuple(keys))
    if not ring.keys:
        raise ValueError("contains no key that can be used")
    return ring


def _read_key(row: object) -> Key | None:
    if not isinstance(row, dict) or row.get("use", "sig") != "sig" or "verify" not in row.get("key_ops", ["verify"]):
        return None
    key_id = row.get("kid")
    try:
        found = _bind(jwt.PyJWK(row).key)
    except (jwt.PyJWTError, ValueError, TypeError, UnsupportedAlgorithm):
        return None
    algorithms = found.algorithms & {row["alg"]} if isinstance(row.get("alg"), str) else found.algorithms
    if not algorithms:
        return None
    return Key(algorithms, found.material, key_id if isinstance(key_id, str) else None)


def _read_pem(content: bytes) -> list[Key]:
    """The keys of the PEM blocks; other text is ignored. An unusable block is skipped if there is another one."""
    keys, odd = [], None
    for block in content.split(b"-----BEGIN ")[1:]:
        whole = b"-----BEGIN " + block
        try:
            if block.startswith((b"CERTIFICATE", b"X509 CERTIFICATE", b"TRUSTED CERTIFICATE")):
                keys.append(_bind(x509.load_pem_x509_certificate(whole).public_key()))
            elif block.startswith((b"PUBLIC KEY", b"RSA PUBLIC KEY")):
                keys.append(_bind(load_pem_public_key(whole)))
            elif b"PRIVATE KEY" in block[:40]:
                raise ValueError("contains a private key: expected only the public key")
        except (ValueError, UnsupportedAlgorithm) as error:
            odd = odd or error
    if odd is not None and not keys:
        raise ValueError(str(odd)) from odd
    return keys


def _bind(material: Any) -> Key:
    """A key with its algorithms; raises ValueError for a weak or unknown one."""
    if isinstance(material, bytes):
        return _make_secret(material)
    if isinstance(material, rsa.RSAPublicKey):
        if not RSA_BITS_MIN <= material.key_size <= RSA_BITS_MAX:
            raise ValueError(f"holds an RSA key of {material.key_size} bits: expected {RSA_BITS_MIN} to {RSA_BITS_MAX}")
        return Key(_RSA, material)
    if isinstance(material, ec.EllipticCurvePublicKey) and material.curve.name in _CURVES:
        return Key(frozenset({_CURVES[material.curve.name]}), material)
    if isinstance(material, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
        return Key(frozenset({"EdDSA"}), material)
    raise ValueError(f"holds a key that cannot be used: {type(material).__name__}")


def _make_secret(secret: bytes) -> Key:
    fit = frozenset(name for name, length in SECRET_BYTES.items() if len(secret) >= length)
    if not fit:
        raise ValueError("contains a secret of less than 32 bytes")
    return Key(fit, secret)
