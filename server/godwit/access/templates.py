"""Patterns of the configuration in which {identity} or {tenant} stands for one whole segment.

Pure. Invariant: a name never becomes more than that segment, so that nobody can be named into somebody else's subjects.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import SubjectInvalid
from ..subject import check_subject


def fill_template(template: str, names: Mapping[str, str]) -> str:
    """The pattern of one holder; raises ValueError where a name that it needs cannot stand in a subject."""
    for braces, name in names.items():
        if braces in template:
            check_segment(name)
            template = template.replace(braces, name)
    return template


def check_segment(name: str) -> None:
    """Raises ValueError where a name is not a single, plain segment of a subject."""
    try:
        check_subject("/" + name)
    except SubjectInvalid as error:
        raise ValueError("the holder's name cannot stand in a subject") from error
    if "/" in name or name.startswith("$") or "{" in name:
        raise ValueError("the holder's name cannot stand in a subject")
