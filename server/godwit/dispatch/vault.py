"""The keys under which stored secrets are encrypted: AES-256-GCM, one key in use, and older ones while a change of keys is under way.

Owns the key file (0600): a key a line, base64, the newest first. Without it a copy of the database tells no secret. Invariant: a text that
was encrypted under a key that is not here is never shown as anything but empty.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..errors import ConfigInvalid
from .tokens import write_private

KEY_BYTES = 32
NONCE_BYTES = 12
FORM = "g1"
"""How encrypted texts begin; the id of their key follows."""


class Vault:
    """Seals texts under the first key, and unseals those of any."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._ciphers = {make_key_id(key): AESGCM(key) for key in keys}
        self.key_id = make_key_id(keys[0])

    def seal(self, text: str) -> str:
        """The encrypted text; an empty one stays empty."""
        if not text:
            return text
        nonce = os.urandom(NONCE_BYTES)
        sealed = nonce + self._ciphers[self.key_id].encrypt(nonce, text.encode(), self.key_id.encode())
        return f"{FORM}.{self.key_id}.{base64.b64encode(sealed).decode()}"

    def unseal(self, text: str) -> str:
        """The text that was sealed; one that never was is itself, and one whose key is gone or that was damaged is empty."""
        if not text.startswith(f"{FORM}."):
            return text
        _, key_id, encoded = text.split(".", 2)
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            return ""
        try:
            sealed = base64.b64decode(encoded, validate=True)
            return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], key_id.encode()).decode()
        except (InvalidTag, ValueError):
            return ""


def make_key_id(key: bytes) -> str:
    """What names a key in public."""
    return hashlib.sha256(b"godwit secrets" + key).hexdigest()[:8]


def read_keys(file: Path) -> list[bytes]:
    """The keys of a file, the newest first; a file that is not there gets one. Raises ConfigInvalid."""
    try:
        lines = file.read_text("ascii").split()
    except FileNotFoundError:
        keys = [os.urandom(KEY_BYTES)]
        write_keys(file, keys)
        return keys
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid("dispatch.secrets_key_file", str(file), f"cannot be read: {error}") from error
    try:
        keys = [base64.b64decode(line, validate=True) for line in lines]
    except ValueError:
        keys = []
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        raise ConfigInvalid("dispatch.secrets_key_file", str(file), "must hold keys of 32 bytes in base64, one a line")
    return keys


def write_keys(file: Path, keys: Sequence[bytes]) -> None:
    """Replaces the file, whole or not at all."""
    write_private(file, b"".join(base64.b64encode(key) + b"\n" for key in keys))
