"""The chain of judges that vouch for holders, and the authorities that each trusts.

The judges of dispatch and certificates come before the mode's own, which they hold as `inner`. A user's authorizer is the
last one; attributes of its object are not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from .authorizer import Authorizer
from .hosted import HostedAuthorizer
from .templates import RuleTemplate


@runtime_checkable
class Vouching(Protocol):
    """A judge that vouches for holders itself."""

    def list_trusted(self) -> list[str]:
        """The authorities; followed by `\n` and a key or a name if only that one is trusted."""


@runtime_checkable
class Configured(Protocol):
    """A judge whose grants contain rules of the configuration."""

    def list_rules(self) -> dict[str, list[RuleTemplate]]:
        """These rules, by the authority whose holders have them."""


def list_judges(authorizer: Authorizer | None) -> Iterator[Authorizer]:
    """All judges, from the outermost to the mode's own."""
    judge = authorizer
    while judge is not None:
        yield judge
        judge = None if isinstance(judge, HostedAuthorizer) else getattr(judge, "inner", None)


def is_trusted(authorizer: Authorizer | None, source: str | None) -> bool:
    """Whether the source of a grant may still vouch; a grant without a source always passes."""
    return source is None or any(
        source == trusted or source.startswith(f"{trusted}\n")
        for judge in list_judges(authorizer)
        if isinstance(judge, Vouching)
        for trusted in judge.list_trusted()
    )
