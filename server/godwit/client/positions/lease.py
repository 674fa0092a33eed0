"""A lease on a file of positions, so that two processes do not write it in turns. It is the file `FILE.lock` in the same
folder.

It holds `{"owner": RANDOM, "host": HOST, "pid": PID, "beat": COUNT}`, in the same form for all clients of Godwit. Its
owner increments `beat` every 2 seconds. A lease that has not changed for 10 seconds is void: its owner was killed or is
frozen. Times are measured by this machine only.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import secrets
import socket
import time
from pathlib import Path
from typing import Any

from ...errors import PositionFileHeld

VOID_S = 10.0
RENEW_S = 2.0
LOOK_S = 0.1


class Lease:
    """The lease on one file. If none could be created, `is_held` is False and nothing is checked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.with_name(path.name + ".lock")
        self._owner = secrets.token_hex(16)
        self._beat = 0
        self._lost: PositionFileHeld | None = None  # another has it
        self.is_held = False

    async def acquire(self) -> None:
        """Take the lease, after waiting if the current one may be void. Raises PositionFileHeld if its owner is alive,
        OSError if it cannot be written.
        """
        self._lost = None
        until, void_at, seen, is_alive = time.monotonic() + VOID_S, 0.0, None, False
        while not self._create():
            holder, now = self._read(), time.monotonic()
            if holder is None:  # released between the two looks, or a symbolic link that leads nowhere
                if now >= until:
                    raise FileExistsError(errno.EEXIST, "it exists, but cannot be read", str(self._lock))
                await asyncio.sleep(LOOK_S)
                continue
            if holder != seen:
                is_alive, seen, void_at = seen is not None, holder, now + VOID_S
            if now >= void_at:
                self._write()  # if two do this at once, the loser notices at its first save
                self.is_held = True
                return
            if now >= until and is_alive:
                raise self._held_by(holder)
            await asyncio.sleep(LOOK_S)

    def check(self) -> None:
        """Raises PositionFileHeld if another process took the lease because this one did not run for too long."""
        if self._lost is not None:
            raise self._lost.with_traceback(None)
        if self.is_held and (holder := self._read()) is not None and holder.get("owner") != self._owner:
            self.is_held, self._lost = False, self._held_by(holder)
            raise self._lost.with_traceback(None)

    def renew(self) -> None:
        """Increment `beat`. Raises PositionFileHeld or OSError."""
        self.check()
        if self.is_held:
            self._beat += 1
            self._write()

    def release(self) -> None:
        """Delete the lease, so that the next owner need not wait."""
        if self.is_held and (self._read() or {}).get("owner") == self._owner:
            self._lock.unlink(missing_ok=True)
        self.is_held = False

    def _create(self) -> bool:
        """Create the file; False if it exists."""
        beside = self._write_beside()
        try:
            os.link(beside, self._lock)  # whole, or not at all
        except FileExistsError:
            return False
        finally:
            beside.unlink()
        self.is_held = True
        return True

    def _write(self) -> None:
        self._write_beside().replace(self._lock)

    def _write_beside(self) -> Path:
        beside = self._lock.with_name(f"{self._lock.name}.{self._owner}")
        content = {"owner": self._owner, "host": socket.gethostname(), "pid": os.getpid(), "beat": self._beat}
        try:
            beside.write_text(json.dumps(content))
        except OSError:
            beside.unlink(missing_ok=True)  # a full disk keeps a part of it
            raise
        return beside

    def _read(self) -> dict[str, Any] | None:
        """The current owner; None if there is none. A file that is not a lease counts as an owner without a name."""
        try:
            read = json.loads(self._lock.read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            return {}
        return read if isinstance(read, dict) else {}

    def _held_by(self, holder: dict[str, Any]) -> PositionFileHeld:
        return PositionFileHeld(str(self._path), str(holder.get("host", "?")), str(holder.get("pid", "?")))
