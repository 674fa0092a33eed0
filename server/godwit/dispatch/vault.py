"""The keys that encrypt stored secrets: AES-256-GCM, with one key in use, and older ones during a change of keys.

Owns the key file (0600): one base64 key on each line, the newest first. Without it a copy of the database reveals no
secret. Invariant: a text whose key is missing is shown as empty.
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
"""The prefix of encrypted texts; the id of their key follows."""


class Vault:
    """Encrypts texts with the first key, and decrypts texts of any key."""

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
        """The decrypted text. A text that was never encrypted is returned unchanged; one whose key is missing or that was
        damaged is empty.
        """
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
    """The public id of a key."""
    return hashlib.sha256(b"godwit secrets" + key).hexdigest()[:8]


def read_keys(file: Path) -> list[bytes]:
    """The keys of a file, the newest first; a missing file is created with a new key. Raises ConfigInvalid."""
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
    """Replace the file as a whole."""
    write_private(file, b"".join(base64.b64encode(key) + b"\n" for key in keys))
