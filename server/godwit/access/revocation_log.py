"""The file of revocations: one JSON object on each line. Rows are appended, so the cost does not depend on their number.

Written on a thread; the event loop never waits for the disk. Rows that the disk refuses stay in memory, and the write is
repeated. If most lines are outdated, a new file is written and renamed over the old one. A last line that a crash cut
short was never reported as written, and is ignored. Owns the file's form: a row describes a revocation; with `"lifted":
true` it removes one.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..logs import read_logger

FILE_NAME = "revocations.log"
OLD_FILE_NAME = "revocations.json"
"""The form of earlier nodes: one JSON list."""
Rows = list[dict[str, Any]]

RETRY_S = 5.0
COMPACT_ROWS_MIN = 1_000
"""The number of outdated lines, in addition to the number of revocations, at which the file is rewritten."""


class RevocationLog:
    """The log of one node. `reason`: why the disk refused the last lines; empty if it accepted them."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE_NAME
        self.reason = ""
        self._old_file = folder / OLD_FILE_NAME
        self._waiting: list[bytes] = []
        self._rows = 0
        self._bytes = 0
        self._is_old = False
        self._turn = asyncio.Lock()
        self._retry: asyncio.Task[None] | None = None

    @property
    def unkept(self) -> int:
        """Lines that are not on the disk yet."""
        return len(self._waiting)

    def read(self) -> Iterator[dict[str, Any]]:
        """All rows, oldest first; raises OSError, ValueError."""
        if not self.file.exists():
            self._is_old = self._old_file.exists()
            yield from json.loads(self._old_file.read_bytes()) if self._is_old else ()
            return
        whole, _, _torn = self.file.read_bytes().rpartition(b"\n")
        for line in whole.splitlines():
            self._rows += 1
            yield json.loads(line)
        self._bytes = len(whole) + 1 if whole else 0

    def append(self, row: dict[str, Any]) -> None:
        """Add a row; the next flush writes it."""
        self._waiting.append(json.dumps(row).encode() + b"\n")

    async def flush(self, describe_all: Callable[[], Rows], live: int) -> bool:
        """Write waiting rows. Returns whether all rows are on the disk. `live`: how many rows `describe_all` would return."""
        async with self._turn:
            if not self._waiting and not self._is_old:
                return True
            lines = list(self._waiting)
            try:
                if self._is_old or self._rows - live > max(live, COMPACT_ROWS_MIN):
                    await asyncio.to_thread(self._write_anew, describe_all())
                else:
                    await asyncio.to_thread(self._write_more, lines)
            except OSError as error:
                self._fail(error, describe_all, live)
                return False
            del self._waiting[: len(lines)]
            if self.reason:
                read_logger().info("revocations_saved")
            self.reason = ""
        return True

    async def stop(self) -> None:
        """Stop repeating failed writes."""
        if self._retry is not None:
            self._retry.cancel()

    def _fail(self, error: OSError, describe_all: Callable[[], Rows], live: int) -> None:
        if not self.reason:
            why = f"{self.file}: {error.strerror or error}"
            read_logger().error(
                "revocations_not_saved", reason=why, effect="revoked holders are admitted again after a restart"
            )
        self.reason = error.strerror or str(error)
        if self._retry is None or self._retry.done():
            self._retry = asyncio.get_running_loop().create_task(self._try_again(describe_all, live))

    async def _try_again(self, describe_all: Callable[[], Rows], live: int) -> None:
        while True:
            await asyncio.sleep(RETRY_S)
            if await self.flush(describe_all, live):
                return

    def _write_more(self, lines: list[bytes]) -> None:
        """Write after the last whole line; a partial line of a failed write is removed."""
        content = b"".join(lines)
        is_new = not self.file.exists()
        with self.file.open("r+b" if not is_new else "xb") as written:
            written.truncate(self._bytes)
            written.seek(self._bytes)
            written.write(content)
            written.flush()
            os.fsync(written.fileno())
        if is_new:
            _sync_folder(self.file.parent)
        self._bytes += len(content)
        self._rows += len(lines)

    def _write_anew(self, rows: Rows) -> None:
        beside = self.file.with_suffix(".new")
        with beside.open("wb") as written:
            for row in rows:
                written.write(json.dumps(row).encode() + b"\n")
            written.flush()
            os.fsync(written.fileno())
            length = written.tell()
        beside.replace(self.file)
        _sync_folder(self.file.parent)
        self._old_file.unlink(missing_ok=True)
        self._rows, self._bytes, self._is_old = len(rows), length, False


def _sync_folder(folder: Path) -> None:
    """Flush the folder: a new file name is on the disk only after that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
