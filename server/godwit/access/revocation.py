"""Revoked token ids and identities with their ends, kept over a restart if the node has a data directory.

A revoked identity is refused with any token; a revoked token id only with that token. A revocation without a tenant or an
authority applies to all of that name. The server closes the connections. A client that connects afterwards is refused
here, immediately before the answer is sent, so that none gets in between. Invariant: at most REVOCATIONS_MAX are kept;
one beyond it is refused. One that cannot be written to disk applies from memory, and is written as soon as possible.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import NodeFailed
from .revocation_log import RevocationLog, Rows
from .rights import IDENTITY_BYTES_MAX, TOKEN_ID_BYTES_MAX, read_text

REVOCATIONS_MAX = 1_000_000
FULL_LOOK_MS = 60_000
"""Seconds between two searches for ended revocations while the table is full."""
SECONDS_MAX = 100_000_000_000
"""Unix time in milliseconds has been larger than this since 1973: a smaller `until_ms` is in seconds."""

NAMES_MAX = 200_000
"""The number of remembered names, as hashes; beyond it the oldest are removed."""

Key = tuple[str | None, str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Revocation:
    """Exactly one of identity and token id is set. `until_ms` (Unix time) None: until it is lifted. `tenant` and `authority`
    None: any.
    """

    identity: str | None = None
    token_id: str | None = None
    until_ms: int | None = None
    tenant: str | None = None
    authority: str | None = None

    def __post_init__(self) -> None:
        if (self.identity is None) == (self.token_id is None):
            raise ValueError("name either an identity or a token id")
        for field, bytes_max in (
            ("identity", IDENTITY_BYTES_MAX),
            ("token_id", TOKEN_ID_BYTES_MAX),
            ("tenant", IDENTITY_BYTES_MAX),
            ("authority", IDENTITY_BYTES_MAX),
        ):
            value = getattr(self, field)
            if value is None:
                continue
            value = read_text(field, value)
            if len(value.encode()) > bytes_max or (not value and field != "tenant"):
                raise ValueError(f"{field} must be 1 to {bytes_max:,} bytes")
        is_number = isinstance(self.until_ms, int) and not isinstance(self.until_ms, bool)
        if self.until_ms is not None and not (is_number and 0 <= self.until_ms < 2**63):
            raise ValueError("until_ms must be Unix time in milliseconds, a whole number")

    @property
    def name(self) -> str:
        return (self.identity if self.identity is not None else self.token_id) or ""

    @property
    def key(self) -> Key:
        return (self.identity, self.token_id, self.tenant, self.authority)

    def check_end(self, now_ms: float) -> None:
        """Raises ValueError for an end that has passed, or that is in seconds."""
        if self.until_ms is None or self.until_ms > now_ms:
            return
        if self.until_ms < SECONDS_MAX and self.until_ms * 1000 > now_ms:
            raise ValueError(f"until_ms is in seconds: expected milliseconds, {self.until_ms * 1000}")
        raise ValueError(f"until_ms is in the past: now is {now_ms:.0f}")

    def describe(self) -> dict[str, Any]:
        kind = "identity" if self.identity is not None else "token_id"
        whose = {"tenant": self.tenant, "authority": self.authority}
        return {
            kind: self.name,
            **{name: value for name, value in whose.items() if value is not None},
            "until_ms": self.until_ms,
        }


class Revocations:
    """The revocations of one node. `folder` None: they are lost when the node ends. `same_holder`: authorities whose names
    mean the same people.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        same_holder: tuple[str, ...] = (),
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        self._now_ms = now_ms
        self._same_holder = same_holder
        self._all: dict[Key, Revocation] = {}
        self._full_looked_ms = 0.0
        self.log = RevocationLog(folder) if folder else None
        if self.log is not None:
            self._read(self.log)

    def join(self, authority: str) -> str:
        """The authority under which a holder is stored: the first of those that share names."""
        return self._same_holder[0] if authority in self._same_holder else authority

    def add(self, revocation: Revocation) -> None:
        """Refuse the holder from now on; raises NodeFailed if the table is full. `keep` writes it to disk."""
        if revocation.key not in self._all and len(self) >= REVOCATIONS_MAX:
            if self._now_ms() - self._full_looked_ms >= FULL_LOOK_MS:
                self._full_looked_ms = self._now_ms()
                self._drop_past()
            if len(self) >= REVOCATIONS_MAX:
                raise NodeFailed(f"{REVOCATIONS_MAX:,} revocations are in force already: undo one first")
        self._all[revocation.key] = revocation
        if self.log is not None:
            self.log.append(revocation.describe())

    def lift(
        self,
        *,
        identity: str | None = None,
        token_id: str | None = None,
        tenant: str | None = None,
        authority: str | None = None,
    ) -> bool:
        """Remove exactly this revocation; returns whether it existed. `keep` writes that to disk."""
        lifted = self._all.pop((identity, token_id, tenant, authority), None)
        if lifted is not None and self.log is not None:
            self.log.append({**lifted.describe(), "lifted": True})
        return lifted is not None

    async def keep(self) -> bool:
        """Write unwritten changes. False: the disk refuses them, and the write is repeated until it succeeds."""
        return self.log is None or await self.log.flush(self._describe_all, len(self))

    async def stop(self) -> None:
        """Try for the last time to write unwritten changes."""
        if self.log is not None:
            await self.keep()
            await self.log.stop()

    def covers(self, identity: str, token_id: str | None, tenant: str = "", authority: str = "") -> bool:
        """Whether this identity, or this token, is revoked now."""
        found = (self._all.get(key) for key in self._keys(identity, token_id, tenant, self.join(authority)))
        now_ms = self._now_ms()
        return any(one is not None and (one.until_ms is None or now_ms < one.until_ms) for one in found)

    def list(self) -> list[Revocation]:
        """The current revocations, identities first, by name."""
        self._drop_past()
        return sorted(self._all.values(), key=lambda one: (one.identity is None, one.name))

    def name_all(self) -> Iterator[dict[str, str | None]]:
        """The current revocations in the engine's form."""
        for one in self.list():
            authority = None if one.authority is None else self.join(one.authority)
            yield {"identity": one.identity, "token": one.token_id, "tenant": one.tenant, "authority": authority}

    def __len__(self) -> int:
        return len(self._all)

    def _keys(self, identity: str, token_id: str | None, tenant: str, authority: str) -> Iterator[Key]:
        if not self._all:
            return
        authorities = self._same_holder if authority in self._same_holder else (authority,)
        for of_tenant in (None, tenant):
            for of_authority in (None, *authorities):
                yield (identity, None, of_tenant, of_authority)
                if token_id is not None:
                    yield (None, token_id, of_tenant, of_authority)

    def _drop_past(self) -> None:
        now_ms = self._now_ms()
        for key in [key for key, one in self._all.items() if one.until_ms is not None and one.until_ms <= now_ms]:
            del self._all[key]

    def _describe_all(self) -> Rows:
        self._drop_past()
        return [one.describe() for one in self._all.values()]

    def _read(self, log: RevocationLog) -> None:
        try:
            for row in log.read():
                is_lifted = row.pop("lifted", False)
                revocation = Revocation(**row)
                if is_lifted:
                    self._all.pop(revocation.key, None)
                else:
                    self._all[revocation.key] = revocation
        except (
            OSError,
            RecursionError,
            ValueError,
            TypeError,
            AttributeError,
        ) as error:  # to start without them would let the revoked in
            raise NodeFailed(f"{log.file} cannot be read, and it says who is revoked: {error}") from error


class SeenNames:
    """Identities and token ids that have connected; bounded."""

    def __init__(self) -> None:
        self._names: OrderedDict[int, None] = OrderedDict()

    def add(self, *names: str | None) -> None:
        for name in names:
            if name:
                self._names[hash(name)] = None
                self._names.move_to_end(hash(name))
        while len(self._names) > NAMES_MAX:
            self._names.popitem(last=False)

    def __contains__(self, name: str) -> bool:
        return hash(name) in self._names
