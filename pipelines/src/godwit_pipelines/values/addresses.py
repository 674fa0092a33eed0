"""Paths of folders and files in settings: a local path, or `file:///PATH`. Pure.

Tables and journals need locks, renames and fsync, so addresses of other stores are refused. They would otherwise become a folder of that
name in the working directory.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..errors import ConfigInvalid

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_HERE = ("", "localhost")
_WHY = "is not a local path: other stores are not supported, because tables and journals need locks, renames and fsync"


def local_path(key: str, text: str, source: str = "") -> str:
    """The local path. Raises ConfigInvalid for the address of another store."""
    if text == "~" or text.startswith("~/"):
        return str(Path(text).expanduser())
    if not _ADDRESS.match(text):
        return text
    parts = urlsplit(text)
    if parts.scheme.lower() == "file" and parts.netloc in _HERE and not parts.query and not parts.fragment:
        return unquote(parts.path)
    raise ConfigInvalid(key, text, _WHY, hint="give a path, or file:///PATH", source=source)
