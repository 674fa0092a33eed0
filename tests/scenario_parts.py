"""Options of a scenario's clients: tokens that the suite signs, and position stores that fail."""

from __future__ import annotations

import threading
import time
from collections import UserDict
from pathlib import Path

import jwt

ISSUER, SECRET = "https://login.example", "0123456789abcdef0123456789abcdef"
TOKEN_S = 600
HANG_S = 3  # longer than the answer timeout of the scenarios' clients


def write_access(folder: Path) -> list[str]:
    """The options of a node that takes this suite's tokens alone."""
    secret, config = folder / "secret", folder / "node.toml"
    secret.write_text(SECRET)
    config.write_text(f'[access]\nmode = "jwt"\n[issuers."{ISSUER}"]\nkeys_file = "{secret}"\nalgorithms = ["HS256"]\n')
    return ["--config", str(config)]


def token_of(identity: str) -> str:
    """A token of this identity; the one of `forged` has a signature of somebody else."""
    permissions = {"allow": {"both": ["/all/**", f"/of/{identity}/**"]}}
    claims = {"iss": ISSUER, "sub": identity, "exp": time.time() + TOKEN_S, "permissions": permissions}
    return jwt.encode(claims, SECRET[::-1] if identity == "forged" else SECRET, "HS256")


class Store(UserDict[str, object]):
    """A mapping of positions that fails in one of the ways that a scenario names."""

    def __init__(self, way: str) -> None:
        super().__init__()
        if way not in ("rejects", "hangs"):
            raise AssertionError(f"no store {way}")
        self._way = way
        self.hung = threading.Event()

    def __setitem__(self, selector: str, saved: object) -> None:
        if self._way == "rejects":
            raise OSError("the database is gone")
        if not self.hung.is_set():
            self.hung.set()
            threading.Event().wait(HANG_S)  # as a database without an answer: the program's event loop stands still
        super().__setitem__(selector, saved)
