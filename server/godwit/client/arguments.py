"""Checks the arguments of the client's public methods at the call, so that a mistake is raised where it was made.

Each check names the argument, what it was, and what is expected: TypeError for a wrong type, ValueError for a wrong value.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping

from ..errors import PositionInvalid
from ..model import Position
from ..subject import check_subject
from .resume_point import ResumePoint

KEY_BYTES_MAX = 256
NEVER_MS = 1 << 31  # a longer time never ends


def check_text(name: str, value: object, bytes_max: int | None = None) -> None:
    """A text that UTF-8 can hold, not empty."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {_shown(value)}: expected str")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{name} has a lone surrogate, which UTF-8 cannot hold") from None
    if size == 0:
        raise ValueError(f"{name} is empty")
    if bytes_max is not None and size > bytes_max:
        raise ValueError(f"{name} is {size} bytes long: at most {bytes_max} are allowed")


def check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {_shown(value)}: expected True or False")


def check_function(name: str, value: object) -> None:
    """One that is called and not awaited."""
    if not callable(value) or inspect.iscoroutinefunction(value):
        raise TypeError(f"{name} is {_shown(value)}: expected a function that is not async")


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {_shown(value)}: expected one of {', '.join(map(repr, choices))}")


def check_count(name: str, value: object, least: int) -> None:
    """A whole number; True and False are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {_shown(value)}: expected a whole number from {least} up")
    if value < least or value > 0xFFFF_FFFF:
        raise ValueError(f"{name} is {_shown(value)}: expected a whole number from {least} to {0xFFFF_FFFF}")


def seconds_of(name: str, value: object) -> float | None:
    """A time in milliseconds as seconds; None: so long that it never ends."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} is {_shown(value)}: expected a number of milliseconds")
    if not value >= 0:  # NaN too
        raise ValueError(f"{name} is {_shown(value)}: expected a number of milliseconds from 0 up")
    return None if value >= NEVER_MS else value / 1000


def resume_point_of(selector: str, after: object) -> ResumePoint | None:
    """What `after` of a subscribe says: a stand, a position of the selector, or positions by subject."""
    if after is None or isinstance(after, ResumePoint):
        return after
    if isinstance(after, Position):
        return ResumePoint({selector: after})
    if not isinstance(after, Mapping):
        raise TypeError(
            f"after is {_shown(after)}: expected a ResumePoint, a Position, or a mapping of subject to Position"
        )
    for subject, position in after.items():
        if not isinstance(subject, str):
            raise TypeError(f"after has the subject {_shown(subject)}: expected str")
        check_subject(subject)
        if not isinstance(position, Position):
            raise PositionInvalid(f"after[{subject!r}] = {_shown(position)}")
    return ResumePoint(dict(after))


def _shown(value: object) -> str:
    return repr(value)[:80]
