"""What is revoked: token ids and identities, until when, kept over a restart where the node has a data directory.

A revoked identity is refused whatever it shows; a revoked token id only with that token. Whoever is connected is closed by an
order of the server's; who asks afterwards is refused here, at the last moment before the answer leaves, so that none slips
through between. Invariant: at most REVOCATIONS_MAX are kept, and one that cannot be kept is refused, not forgotten.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import NodeFailed
from .rights import IDENTITY_BYTES_MAX

REVOCATIONS_MAX = 1_000_000
FILE_NAME = "revocations.json"
NAME_BYTES_MAX = IDENTITY_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Revocation:
    """Exactly one of identity and token id; `until_ms` (Unix time) None: until it is lifted."""

    identity: str | None = None
    token_id: str | None = None
    until_ms: int | None = None

    def __post_init__(self) -> None:
        if (self.identity is None) == (self.token_id is None):
            raise ValueError("name either an identity or a token id")
        if not 1 <= len(self.name.encode()) <= NAME_BYTES_MAX:
            raise ValueError(f"a name is 1 to {NAME_BYTES_MAX} bytes")
        if self.until_ms is not None and (isinstance(self.until_ms, bool) or not 0 <= self.until_ms < 2**63):
            raise ValueError("until_ms is Unix time in milliseconds")

    @property
    def name(self) -> str:
        return (self.identity if self.identity is not None else self.token_id) or ""

    def describe(self) -> dict[str, object]:
        kind = "identity" if self.identity is not None else "token_id"
        return {kind: self.name, "until_ms": self.until_ms}


class Revocations:
    """All of one node. `folder` None: they live as long as the node."""

    def __init__(self, folder: Path | None = None, *, now_ms: Callable[[], float] = lambda: time.time() * 1000) -> None:
        self._file = folder / FILE_NAME if folder else None
        self._now_ms = now_ms
        self._identities: dict[str, Revocation] = {}
        self._token_ids: dict[str, Revocation] = {}
        if self._file is not None and self._file.exists():
            self._read(self._file)

    def add(self, revocation: Revocation) -> None:
        """Refuses it from now on; raises NodeFailed where it cannot be kept."""
        table = self._table(revocation)
        if revocation.name not in table and len(self) >= REVOCATIONS_MAX:
            self._drop_past()
            if len(self) >= REVOCATIONS_MAX:
                raise NodeFailed(f"{REVOCATIONS_MAX:,} revocations are kept already")
        before = table.get(revocation.name)
        table[revocation.name] = revocation
        try:
            self._write()
        except OSError as error:
            if before is None:
                del table[revocation.name]
            else:
                table[revocation.name] = before
            raise NodeFailed(f"the revocation cannot be kept: {error.strerror}") from error

    def lift(self, *, identity: str | None = None, token_id: str | None = None) -> bool:
        """Forgets one; whether there was one."""
        table, name = (self._identities, identity) if identity is not None else (self._token_ids, token_id)
        if name is None or table.pop(name, None) is None:
            return False
        self._write()
        return True

    def covers(self, identity: str, token_id: str | None) -> bool:
        """Whether this identity, or this token, is revoked now."""
        found = (self._identities.get(identity), self._token_ids.get(token_id) if token_id is not None else None)
        now_ms = self._now_ms()
        return any(one is not None and (one.until_ms is None or now_ms < one.until_ms) for one in found)

    def list(self) -> list[Revocation]:
        """Those that hold now, identities first, by name."""
        self._drop_past()
        return [table[name] for table in (self._identities, self._token_ids) for name in sorted(table)]

    def __len__(self) -> int:
        return len(self._identities) + len(self._token_ids)

    def _table(self, revocation: Revocation) -> dict[str, Revocation]:
        return self._identities if revocation.identity is not None else self._token_ids

    def _drop_past(self) -> None:
        now_ms = self._now_ms()
        for table in (self._identities, self._token_ids):
            for name in [n for n, one in table.items() if one.until_ms is not None and one.until_ms <= now_ms]:
                del table[name]

    def _read(self, file: Path) -> None:
        try:
            rows = json.loads(file.read_bytes())
            for row in rows:
                revocation = Revocation(row.get("identity"), row.get("token_id"), row.get("until_ms"))
                self._table(revocation)[revocation.name] = revocation
        except (
            OSError,
            RecursionError,
            ValueError,
            TypeError,
            AttributeError,
        ) as error:  # to start without them would let the revoked in
            raise NodeFailed(f"{file} cannot be read, and it says who is revoked: {error}") from error

    def _write(self) -> None:
        """Whole or not at all, and on the disk before anybody is told."""
        if self._file is None:
            return
        self._drop_past()
        rows = [one.describe() for table in (self._identities, self._token_ids) for one in table.values()]
        beside = self._file.with_suffix(".new")
        with beside.open("wb") as written:
            written.write(json.dumps(rows).encode())
            written.flush()
            os.fsync(written.fileno())
        beside.replace(self._file)
