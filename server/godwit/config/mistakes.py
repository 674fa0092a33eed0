"""Gathers what is wrong with a configuration, so that an operator is told everything at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..errors import ConfigInvalid, ConfigsInvalid


class Mistakes:
    """Mistakes in the order in which they were found."""

    def __init__(self) -> None:
        self._found: list[ConfigInvalid] = []

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Keeps the ConfigInvalid that the block raises."""
        try:
            yield
        except ConfigInvalid as error:
            self._found.extend(error.errors if isinstance(error, ConfigsInvalid) else [error])

    def add(self, found: Iterable[ConfigInvalid]) -> None:
        self._found.extend(found)

    def raise_found(self) -> None:
        """Raises the one that was gathered, or all of them as ConfigsInvalid; nothing where there is none."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise ConfigsInvalid(self._found)
