"""Patterns of the configuration in which {identity} or {tenant} is one whole segment.

Pure. Invariant: a name never becomes more than that segment, so that no name gives access to subjects of others.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import SubjectInvalid
from ..subject import check_subject

RuleTemplate = tuple[str, str, str]
"""Pattern with {identity} and {tenant}, actions and verdict, as the engine fills it in for one holder (core/src/rights/configured.rs)."""


def fill_template(template: str, names: Mapping[str, str]) -> str:
    """The pattern for one holder; raises ValueError if a name that it needs cannot be a segment."""
    for braces, name in names.items():
        if braces in template:
            check_segment(name)
            template = template.replace(braces, name)
    return template


def check_segment(name: str) -> None:
    """Check that a name is a single, plain segment of a subject; raises ValueError."""
    try:
        check_subject("/" + name)
    except SubjectInvalid as error:
        raise ValueError("the identity of the token is not valid as a segment of a subject") from error
    if "/" in name or name.startswith("$") or "{" in name:
        raise ValueError("the identity of the token is not valid as a segment of a subject")
