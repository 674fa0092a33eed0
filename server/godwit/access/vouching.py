"""Who vouches for holders: the judges in front of one another, and what each of them trusts.

Those of dispatch and of certificates stand in front of the mode's own, as `inner`. A user's authorizer is the last: what its object
has of such names is its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from .authorizer import Authorizer
from .hosted import HostedAuthorizer


@runtime_checkable
class Vouching(Protocol):
    """A judge that vouches for holders itself."""

    def list_trusted(self) -> list[str]:
        """The authorities, with `\\n` and a key or a name behind them where not all of theirs are trusted."""


def list_judges(authorizer: Authorizer | None) -> Iterator[Authorizer]:
    """From the outermost to the mode's own."""
    judge = authorizer
    while judge is not None:
        yield judge
        judge = None if isinstance(judge, HostedAuthorizer) else getattr(judge, "inner", None)


def is_trusted(authorizer: Authorizer | None, source: str | None) -> bool:
    """Whether who vouched for a grant may still do so; without a source nobody can have been removed."""
    return source is None or any(
        source == trusted or source.startswith(f"{trusted}\n")
        for judge in list_judges(authorizer)
        if isinstance(judge, Vouching)
        for trusted in judge.list_trusted()
    )
