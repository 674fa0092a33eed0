"""Resume points in a JSON file, one entry for each selector. Each save writes a new file and renames it over the old one."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import logging
import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from ...errors import PositionFileInvalid
from .lease import Lease

log = logging.getLogger("godwit.client")


class PositionFile(MutableMapping[str, object]):
    """A mapping that `save` writes to its file. A file that does not exist is empty; one that cannot be read
    raises PositionFileInvalid, or OSError.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if not self._path.name:  # "/", "." and "" are folders, for which no temporary file can be named
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self._path))
        self._saved: dict[str, object] = {}
        self._is_changed = False
        self._users = 0  # clients that use it now
        self._opening = asyncio.Lock()  # a second client of this process waits until the first has the lease
        self.lease = Lease(self._path)
        self._read()

    async def open(self) -> None:
        """Take the lease, and read the latest content of the file.

        Raises PositionFileHeld if another process uses it. If no lease can be created, a warning is logged.
        """
        async with self._opening:
            if self._users == 0:
                try:
                    await self.lease.acquire()
                except OSError as error:
                    log.warning("%s has no lease: use by a second process would not be noticed: %s", self._path, error)
                try:
                    self._read()
                except BaseException:
                    self._release()
                    raise
            self._users += 1

    def close(self) -> None:
        """Release the lease, because a client no longer uses the file."""
        self._users -= 1
        if self._users == 0:
            self._release()

    def _release(self) -> None:
        with contextlib.suppress(OSError):  # it is void in a moment
            self.lease.release()

    def _read(self) -> None:
        if not self._path.exists() or self._is_changed:
            return
        if not self._path.is_file() and not self._path.is_dir():  # reading a pipe or a device may never end
            raise PositionFileInvalid(str(self._path), "not a regular file")
        try:
            read = json.loads(self._path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise PositionFileInvalid(str(self._path), str(error)) from error
        if not isinstance(read, dict):
            raise PositionFileInvalid(str(self._path), "not a JSON object")
        self._saved = read

    def save(self) -> None:
        """Write changes: a reader finds the old file or the new one, never a partial one.

        Raises PositionFileHeld if another process took the lease, because this one did not run for 10 seconds.
        """
        self.lease.check()
        if not self._is_changed:
            return
        beside = self._path.with_name(self._path.name + ".new")
        with beside.open("w") as file:
            json.dump(self._saved, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self._path)
        self._is_changed = False

    def __getitem__(self, selector: str) -> object:
        return self._saved[selector]

    def __setitem__(self, selector: str, resume_point: object) -> None:
        self._saved[selector] = resume_point
        self._is_changed = True

    def __delitem__(self, selector: str) -> None:
        del self._saved[selector]
        self._is_changed = True

    def __iter__(self) -> Iterator[str]:
        return iter(self._saved)

    def __len__(self) -> int:
        return len(self._saved)
