"""A fast replacement for the compiled engine that moves no bytes, for tests of the code around it.

It listens on a real port, keeps the last message of each subject, and reports what a test passes in.
tests/unit/test_engine.py runs the same tests against it and, if it is built, the real engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from typing import Any

from ..codes import Code
from ..config import Config
from ..engine import Engine, Start, make_settings
from ..errors import SubjectInvalid
from ..subject import check_subject, matches


class FakeEngine:
    """`tell` adds reports, `orders` has the received orders; tests wait for `was_read` and `was_ordered`."""

    is_disk_sound = True

    def __init__(self, settings_json: str) -> None:
        self.settings: dict[str, Any] = json.loads(settings_json)
        self.orders: list[tuple[Any, ...]] = []
        self.connection_rows: list[dict[str, Any]] = []
        self.drains: list[tuple[int, int]] = []
        self.is_stopped = False
        self.heard: list[tuple[Any, ...]] = []
        self.heard_lost = 0
        self.statistics: list[tuple[int, list[tuple[Any, ...]]]] = []
        self.was_ordered = asyncio.Event()
        self.was_read = asyncio.Event()
        self._epoch = self.settings["epoch"]
        self._subjects: dict[str, tuple[int, bytes]] = {}
        self._reports: list[tuple[Any, ...]] = []
        self._signal = os.eventfd(0, os.EFD_NONBLOCK) if hasattr(os, "eventfd") else -1
        self._socket: socket.socket | None = None

    def start(self) -> dict[str, Any]:
        host, _, port = self.settings["listeners"][0]["address"].rpartition(":")
        self._socket = socket.create_server((host, int(port)))
        bound = self._socket.getsockname()
        return {"client": f"{bound[0]}:{bound[1]}", "driver": "fake", "driver_reason": "", "shards": 1}

    def report_fd(self) -> int:
        return self._signal

    def tell(self, *reports: tuple[Any, ...]) -> None:
        """Add reports, as if they came from the engine."""
        self._reports += reports
        self.was_read.clear()
        os.eventfd_write(self._signal, 1)

    def reports(self) -> list[tuple[Any, ...]]:
        with contextlib.suppress(BlockingIOError):  # there are no new reports
            os.eventfd_read(self._signal)
        waiting, self._reports = self._reports, []
        self.was_read.set()
        return waiting

    def order(self, orders: list[tuple[Any, ...]]) -> None:
        self.orders += orders
        self.was_ordered.set()

    def publish_many(self, messages: list[tuple[str, bytes, str, bool]]) -> list[tuple[int, str]]:
        return [self._publish(subject, content) for subject, content, _kind, _retain in messages]

    def stats(self) -> dict[str, Any]:
        sequences = [sequence for sequence, _ in self._subjects.values()]
        return {
            "subjects": len(sequences),
            "accepted": sum(sequences),
            "shards": [{"protocols": {"json": {"connections": 0}}}],
        }

    def subjects(self, after: str, limit: int, pattern: str | None) -> list[dict[str, Any]]:
        names = sorted(name for name in self._subjects if name > after and (not pattern or matches(pattern, name)))
        return [{"subject": name, "at": f"{self._epoch}.{self._subjects[name][0]}"} for name in names[:limit]]

    def survey(
        self, pattern: str | None, search: str, sort: str, is_descending: bool, offset: int, limit: int
    ) -> dict[str, Any]:
        found = [row for row in self.subjects("", 10**9, pattern) if all(w in row["subject"] for w in search.split())]
        rows = sorted(found, key=lambda row: row["subject"], reverse=is_descending and sort == "subject")
        page = [{**row, "rate_per_s": None} for row in rows[offset : offset + limit]]
        return {"rows": page, "total": len(rows), "taken_ms": 0, "took_ms": 0, "is_partial": False}

    def connections(
        self, after: int, limit: int, search: str | None, is_behind: bool
    ) -> tuple[list[dict[str, Any]], int | None]:
        rows = [row for row in self.connection_rows if row["connection"] > after and (search or "") in str(row)]
        rows = [row for row in rows if not is_behind or row.get("behind")]
        return rows[:limit], rows[limit - 1]["connection"] if len(rows) > limit else None

    def connection(self, connection: int) -> dict[str, Any] | None:
        return next((row for row in self.connection_rows if row["connection"] == connection), None)

    def configure(self, settings_json: str) -> None:
        self.settings = json.loads(settings_json)

    def take_heard(self, max: int, bytes_max: int, with_content: bool) -> tuple[list[tuple[Any, ...]], int]:
        taken, self.heard = self.heard[:max], self.heard[max:]
        return taken, self.heard_lost

    def write_stats(self, time_ms: int, rows: list[tuple[Any, ...]]) -> bool:
        self.statistics.append((time_ms, rows))
        return False

    def purge(self, subject: str) -> tuple[int | None, bool]:
        return self._subjects.pop(subject, (None, b""))[0], self.is_disk_sound

    def revoke(
        self, identity: str | None, token: str | None, code: int, tenant: str | None, authority: str | None
    ) -> tuple[int, int, int]:
        self.orders.append(("revoke", identity, token, code, tenant, authority))
        return 0, 0, 0

    def drain(self, grace_ms: int, spread_ms: int) -> None:
        self.drains.append((grace_ms, spread_ms))
        self.tell(("drained",))

    def stop(self) -> None:
        self.is_stopped = True
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._signal >= 0:
            os.close(self._signal)
            self._signal = -1

    def _publish(self, subject: str, content: bytes) -> tuple[int, str]:
        try:
            check_subject(subject)
        except SubjectInvalid:
            return int(Code.SUBJECT_INVALID), ""
        sequence = self._subjects.get(subject, (0, b""))[0] + 1
        self._subjects[subject] = (sequence, content)
        return 0, f"{self._epoch}.{sequence}"


def open_fake_engine(config: Config, start: Start) -> Engine:
    """Replaces engine.open_engine."""
    return Engine(FakeEngine(json.dumps(make_settings(config, start))), config.client.address)
