"""DKIM signatures (RFC 6376, RFC 8463): relaxed/relaxed, with RSA or Ed25519.

Pure, except for the key object that the caller passes. Signs the headers that a reader sees, each once more than it stands, so that none
can be added.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from ....errors import ConfigInvalid

SIGNED = (
    "from",
    "to",
    "cc",
    "reply-to",
    "subject",
    "date",
    "message-id",
    "list-unsubscribe",
    "list-unsubscribe-post",
    "mime-version",
    "content-type",
    "auto-submitted",
)
DkimKey = RSAPrivateKey | Ed25519PrivateKey


def read_dkim_key(file: str) -> DkimKey:
    """The key of a file; raises ConfigInvalid."""
    setting = "dispatch_email.dkim_key_file"
    try:
        return parse_dkim_key(Path(file).read_bytes())
    except OSError as error:
        raise ConfigInvalid(setting, file, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigInvalid(setting, file, str(error)) from error


def parse_dkim_key(text: bytes) -> DkimKey:
    """The key of a PEM text; raises ValueError."""
    try:
        key = load_pem_private_key(text, None)
    except (ValueError, TypeError) as error:
        raise ValueError("does not hold a private key (PEM) without a password") from error
    if not isinstance(key, RSAPrivateKey | Ed25519PrivateKey):
        raise ValueError("holds neither an RSA nor an Ed25519 key")
    return key


def sign(message: bytes, domain: str, selector: str, key: DkimKey, now_s: int) -> bytes:
    """The message with its signature before it."""
    head, _, body = message.partition(b"\r\n\r\n")
    headers = re.findall(rb"^([^\s:]+):((?:[^\r\n]|\r\n[ \t])*)\r\n", head + b"\r\n", re.MULTILINE)
    found = {name.lower().decode("ascii"): _relax_header(name, value) for name, value in headers}
    present = [name for name in SIGNED if name in found]
    body_hash = base64.b64encode(hashlib.sha256(_relax_body(body)).digest()).decode()
    algorithm = "ed25519-sha256" if isinstance(key, Ed25519PrivateKey) else "rsa-sha256"
    names = ":".join([*present, *present])
    value = f"v=1; a={algorithm}; c=relaxed/relaxed; d={domain}; s={selector}; t={now_s}; h={names}; bh={body_hash}; b="
    signed = b"\r\n".join([*(found[name] for name in present), _relax_header(b"dkim-signature", value.encode())])
    signature = base64.b64encode(_sign(key, signed)).decode()
    folded = "\r\n ".join(signature[at : at + 72] for at in range(0, len(signature), 72))
    return f"DKIM-Signature: {value}{folded}\r\n".encode("ascii") + message


def _sign(key: DkimKey, signed: bytes) -> bytes:
    if isinstance(key, Ed25519PrivateKey):
        return key.sign(hashlib.sha256(signed).digest())
    return key.sign(signed, padding.PKCS1v15(), hashes.SHA256())


def _relax_header(name: bytes, value: bytes) -> bytes:
    unfolded = re.sub(rb"[ \t]+", b" ", value.replace(b"\r\n", b"")).strip()
    return name.lower() + b":" + unfolded


def _relax_body(body: bytes) -> bytes:
    lines = [re.sub(rb"[ \t]+", b" ", line).rstrip(b" ") for line in body.split(b"\r\n")]
    while lines and not lines[-1]:
        lines.pop()
    return b"\r\n".join(lines) + b"\r\n" if lines else b""
