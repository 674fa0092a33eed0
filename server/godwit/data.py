"""The data directory: the state that must survive a restart in addition to the journal, which is only the epoch.

Owns the directory's lock and the upper bound of used epochs, so that no position is used twice, even if the wall clock
was set back or the directory was replaced by an older copy. Invariant: the bound on disk is above an epoch before that
epoch is used.
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
"""A running node raises its epoch at most once a second; this number is enough for three years."""
JUMP_BITS = 33
"""If the bound decides the next epoch, it is up to 2^33 above it. Epochs keep 13 digits for about the first 1,900 starts."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class DataDirectory:
    """One node at a time holds it, from open to close."""

    def __init__(self, path: Path) -> None:
        """Create the directory if it does not exist; raises ConfigInvalid if it cannot be used."""
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
        """An epoch above all epochs of this directory; it is on disk before it is returned. Raises NodeFailed. `jump` is
        random: two runs that begin with the same bound, one of them in an older copy of the directory, get different
        epochs, so that their positions are never confused.
        """
        ceiling = self._read_ceiling()
        epoch = wall_ms if wall_ms > ceiling else ceiling + 1 + jump
        self._write_ceiling(epoch + EPOCHS_RESERVED)
        return epoch

    def close(self) -> None:
        """Release the directory for another node."""
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
    """Overwrite the file in place, which is possible on a full disk if the new content is not longer and within one sector.
    False if it is not.
    """
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
