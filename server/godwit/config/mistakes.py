"""Collects the errors of a configuration, so that all are reported at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..errors import ConfigInvalid, ConfigsInvalid


class Mistakes:
    """Errors in the order in which they were found."""

    def __init__(self) -> None:
        self._found: list[ConfigInvalid] = []

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Keep a ConfigInvalid that the block raises."""
        try:
            yield
        except ConfigInvalid as error:
            self._found.extend(error.errors if isinstance(error, ConfigsInvalid) else [error])

    def add(self, found: Iterable[ConfigInvalid]) -> None:
        self._found.extend(found)

    def raise_found(self) -> None:
        """Raise the collected error, or several as ConfigsInvalid; does nothing if there is none."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise ConfigsInvalid(self._found)
