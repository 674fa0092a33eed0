"""The data directory: what must survive the node beside its journal, which is the epoch alone.

Owns the directory's lock and the ceiling of the epochs given out, so that no position is ever given twice even where the
wall clock was set back, or the directory was replaced by an older copy of itself. Invariant: the ceiling on disk is above
every epoch in use before that epoch is used.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

from .errors import ConfigInvalid, NodeFailed

KEY = "node.data_directory"
EPOCHS_RESERVED = 100_000_000
"""A running node raises its epoch at most once a second: this many last three years."""
JUMP_BITS = 33
"""An epoch that the ceiling decides is up to 2^33 above it: positions keep 13 digits for the first 1,900 starts or so."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class DataDirectory:
    """Held by one node at a time, from open to close."""

    def __init__(self, path: Path) -> None:
        """Makes the directory where there is none; raises ConfigInvalid where it cannot be had."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigInvalid(KEY, str(path), f"cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise ConfigInvalid(KEY, str(path), "is in use by another node") from error

    def reserve_epoch(self, wall_ms: int, jump: int) -> int:
        """An epoch above all that this directory knows, kept before it is returned; raises NodeFailed.

        `jump` is random: two runs that begin with the same ceiling, one of them in an older copy of the directory, get
        different epochs, so that a position of one is never taken for a position of the other.
        """
        ceiling = self._read_ceiling()
        epoch = wall_ms if wall_ms > ceiling else ceiling + 1 + jump
        self._write_ceiling(epoch + EPOCHS_RESERVED)
        return epoch

    def close(self) -> None:
        """Lets another node have it."""
        os.close(self._lock)

    def _read_ceiling(self) -> int:
        file = self.path / "epoch"
        try:
            text = file.read_text(encoding="ascii").strip()
            if not text.isdigit():
                raise ValueError(text)
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as error:
            why = f"{file} does not hold a number: restore it, or remove it to begin with the clock's epoch"
            raise NodeFailed(why) from error
        return int(text)

    def _write_ceiling(self, ceiling: int) -> None:
        file, text = self.path / "epoch", f"{ceiling}\n".encode("ascii")
        try:
            try:
                self._replace(file, text)
            except OSError as error:
                if error.errno not in _FULL or not _write_over(file, text):
                    raise
        except OSError as error:
            raise NodeFailed(
                f"{file} cannot be written: {error.strerror}; the node would not know its epochs"
            ) from error

    def _replace(self, file: Path, text: bytes) -> None:
        fresh = self.path / "epoch.new"
        try:
            with fresh.open("wb") as output:
                output.write(text)
                output.flush()
                os.fsync(output.fileno())
            fresh.replace(file)
            directory = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise


def _write_over(file: Path, text: bytes) -> bool:
    """What a full disk has room for: as many bytes in the place of those that are there, within one sector. False where they do not fit."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        if os.fstat(descriptor).st_size != len(text) or os.pwrite(descriptor, text, 0) != len(text):
            return False
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True
