"""Stands kept in a JSON file, one entry per selector, written whole and moved into place."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path

from ...errors import PositionFileInvalid


class PositionFile(MutableMapping[str, object]):
    """A mapping that `save` writes to its file. A file that does not exist is empty; one that cannot be read
    raises PositionFileInvalid.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._saved: dict[str, object] = {}
        self._is_changed = False
        if self._path.exists():
            try:
                read = json.loads(self._path.read_bytes())
            except (ValueError, RecursionError) as error:
                raise PositionFileInvalid(str(self._path), str(error)) from error
            if not isinstance(read, dict):
                raise PositionFileInvalid(str(self._path), "not a JSON object")
            self._saved = read

    def save(self) -> None:
        """Write what has changed: a reader finds the old file or the new one, never half of one."""
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
