"""Carries out an operator's revocation: refuses the holder, closes its connections, writes it to disk, and returns their
number.

A stolen token need not be in use: a name that never connected is revoked too, with a warning, because it may be misspelt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from ..codes import Code
from ..logs import read_logger
from .revocation import Revocation, Revocations, SeenNames

Revoke = Callable[[str | None, str | None, int, str | None, str | None], tuple[int, int, int]]


class Revoker:
    """The revoker of one node. `revoke` of the engine closes and counts; `tell` passes the event to the audits."""

    def __init__(
        self, revocations: Revocations, revoke: Revoke, seen: SeenNames, tell: Callable[[str, str, str, str], None]
    ) -> None:
        self._revocations, self._revoke, self._seen, self._tell = revocations, revoke, seen, tell

    async def revoke(self, revocation: Revocation) -> dict[str, Any]:
        """Revoke; returns what it ended, and whether it is on the disk. Raises NodeFailed if the table is full, ValueError
        for a wrong end.
        """
        revocation.check_end(time.time() * 1000)
        self._revocations.add(revocation)
        connections, sessions, wills = await asyncio.to_thread(
            self._revoke,
            revocation.identity,
            revocation.token_id,
            int(Code.TOKEN_REVOKED),
            revocation.tenant,
            None if revocation.authority is None else self._revocations.join(revocation.authority),
        )
        is_kept = await self._revocations.keep()
        ended = {"connections": connections, "sessions": sessions, "wills": wills, "kept": is_kept}
        warning = "" if connections or sessions or revocation.name in self._seen else _NEVER_SEEN
        read_logger().info("access_revoked", **revocation.describe(), **ended, warning=warning)
        self._tell(revocation.identity or "", revocation.name, revocation.tenant or "", revocation.authority or "")
        return {**revocation.describe(), **ended, "warning": warning}

    async def lift(self, named: dict[str, str]) -> dict[str, Any] | None:
        """Remove a revocation; None if it does not exist."""
        if not self._revocations.lift(**named):
            return None
        return {**named, "lifted": True, "kept": await self._revocations.keep()}

    def describe_trouble(self) -> dict[str, str]:
        """For health: the rows that the disk refuses."""
        log = self._revocations.log
        return {"revocations": f"not kept: {log.reason}"} if log is not None and log.reason else {}


_NEVER_SEEN = "no client with this name has connected since the node started: check the spelling"
