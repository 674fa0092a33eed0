"""The last refusals, for operators: who was refused, with which code and why. Pure; a ring of fixed size.

The engine reports each refused connection and a few refused commands a second; the counters have the totals.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ..codes import CODES

REFUSALS_MAX = 200
REASON_CHARACTERS_MAX = 300


class Refusals:
    """Newest first when listed."""

    def __init__(self) -> None:
        self._rows: deque[dict[str, Any]] = deque(maxlen=REFUSALS_MAX)
        self._number = 0

    def add(
        self,
        time_ms: int,
        code: int,
        reason: str,
        *,
        address: str,
        connection: int | None = None,
        holder: tuple[str, str, str] = ("", "", ""),
    ) -> None:
        """Add one and drop the oldest. `holder`: identity, tenant and authority."""
        self._number += 1
        self._rows.appendleft(
            {
                "number": self._number,
                "time_ms": time_ms,
                "code": code,
                "name": CODES[code].name if code in CODES else "",
                "reason": reason[:REASON_CHARACTERS_MAX],
                "address": address,
                "connection": None if connection is None else f"{connection:x}",
                "identity": holder[0],
                "tenant": holder[1],
                "authority": holder[2],
            }
        )

    def list(self) -> list[dict[str, Any]]:
        """All entries that are kept."""
        return list(self._rows)
