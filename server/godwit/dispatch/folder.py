"""The files of dispatch: the database, its keys, and a note with its address for `godwit send`.

With a data directory they are in DIR/dispatch. Without one they are in a temporary directory (0700) that is removed at
the end, and `$XDG_RUNTIME_DIR/godwit/dispatch.json` has its path.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

import msgspec

from ..errors import ConfigInvalid
from .tokens import write_private


class DispatchFolder:
    """Open from construction to `close`."""

    def __init__(self, data_directory: str) -> None:
        self._is_temporary = not data_directory
        if self._is_temporary:
            self.path = Path(tempfile.mkdtemp(prefix="godwit-dispatch-"))
        else:
            self.path = Path(data_directory) / "dispatch"
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._note: Path | None = None

    @property
    def admin_key_file(self) -> Path:
        """The API key of tenant `default`."""
        return self.path / "admin.key"

    @property
    def signing_key_file(self) -> Path:
        return self.path / "token.key"

    @property
    def public_keys_file(self) -> Path:
        """The JWK Set that the node of this process trusts."""
        return self.path / "keys.json"

    def note_listener(self, url: str, certificate: str = "") -> None:
        """Write the API's address and certificate to the note, for commands of this user on this machine."""
        folder = runtime_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._note = folder / "dispatch.json"
        note = {"url": url, "key_file": str(self.admin_key_file)}
        if certificate:
            note["certificate"] = str(Path(certificate).absolute())
        write_private(self._note, msgspec.json.encode(note))

    def close(self) -> None:
        """Remove temporary files."""
        if self._note is not None:
            self._note.unlink(missing_ok=True)
        if self._is_temporary:
            shutil.rmtree(self.path, ignore_errors=True)


def runtime_folder() -> Path:
    """The folder in which this user's commands look for a running dispatch."""
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(runtime) / "godwit"
    folder = Path(tempfile.gettempdir()) / f"godwit-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigInvalid("TMPDIR", str(folder), "must be a directory that only this user can use")
    return folder
