"""Collects the errors of a configuration, so that all are reported at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..errors import ConfigInvalid, ConfigNameUnknown, ConfigsInvalid


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

    @contextmanager
    def gather_rules(self) -> Iterator[None]:
        """Keep the rules between values that the block raises, except those that name a setting whose own value is invalid."""
        invalid = {_find_name(error) for error in self._found}
        rules = Mistakes()
        with rules.gather():
            yield
        self.add(error for error in rules._found if not any(name in str(error) for name in invalid))

    def add(self, found: Iterable[ConfigInvalid]) -> None:
        self._found.extend(found)

    def raise_found(self) -> None:
        """Raise the collected error, or several as ConfigsInvalid; does nothing if there is none."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise ConfigsInvalid(self._found)


def _find_name(error: ConfigInvalid) -> str:
    """The text by which a rule names an invalid setting; for an unknown one its section, because it is unclear which was meant."""
    section, _, name = error.key.rpartition(".")
    if error.key.startswith(("issuers", "patterns")):
        return error.key.partition(".")[0]
    return section if isinstance(error, ConfigNameUnknown) else name
