"""Checks the arguments of the client's public methods at the call, so that a mistake is raised where it was made.

Each check names the argument, what it was, and what is expected: TypeError for a wrong type, ValueError for a wrong value.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping

from ..errors import PositionInvalid, SubjectInvalid
from ..model import Fields, Position
from ..subject import check_subject
from ..words import shown
from .resume_point import ResumePoint

KEY_BYTES_MAX = 256
FIELD_NAME_BYTES_MAX = 256
TOKEN_BYTES_MAX = 65_536
COUNT_MAX = 0xFFFF_FFFF
NEVER_MS = 1 << 31  # a longer time never ends
POSITION_END = 1 << 64
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def check_text(name: str, value: object, bytes_max: int | None = None) -> None:
    """Check that `value` is text that is not empty and can be encoded as UTF-8."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {shown(value)}: expected str")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{name} has a lone surrogate, which UTF-8 cannot hold") from None
    if size == 0:
        raise ValueError(f"{name} is empty")
    if bytes_max is not None and size > bytes_max:
        raise ValueError(f"{name} is {size} bytes long: at most {bytes_max} are allowed")


def check_token(value: object) -> None:
    """Check that a token is printable ASCII without blanks around it, as an Authorization header needs. The error does not
    show the value.
    """
    if not isinstance(value, str):
        raise TypeError(f"token is a value of type {type(value).__name__}: expected str")
    if not value:
        raise ValueError("token is empty")
    if len(value) > TOKEN_BYTES_MAX:
        raise ValueError(f"token is {len(value)} characters long: at most {TOKEN_BYTES_MAX} are allowed")
    if value != value.strip(" ") or not all(" " <= character <= "~" for character in value):
        raise ValueError(
            "token is not what an Authorization header can hold: printable ASCII, without blanks around it"
        )


def check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {shown(value)}: expected True or False")


def fields_of(fields: object) -> Fields:
    """Check the fields of a publish: names with str or bytes; None removes the field from the snapshot."""
    if fields is None:
        return {}
    if not isinstance(fields, Mapping):
        raise TypeError(f"fields is {shown(fields)}: expected a mapping of name to str, bytes or None")
    for name, value in fields.items():
        check_text("a name in fields", name, FIELD_NAME_BYTES_MAX)
        if _CONTROL.search(name):
            raise ValueError(f"a name in fields is {shown(name)}: control characters are not allowed")
        if isinstance(value, str) and value:
            check_text(f"fields[{name!r}]", value)
        elif not (value is None or isinstance(value, str | bytes)):
            raise TypeError(f"fields[{name!r}] is {shown(value)}: expected str, bytes or None")
    return dict(fields)


def check_function(name: str, value: object) -> None:
    """Check that it can be called and is not a coroutine."""
    if not callable(value) or inspect.iscoroutinefunction(value):
        raise TypeError(f"{name} is {shown(value)}: expected a function that is not async")


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {shown(value)}: expected one of {', '.join(map(repr, choices))}")


def check_count(name: str, value: object, least: int) -> None:
    """Check that it is an integer within its bounds; True and False are refused."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {shown(value)}: expected a whole number from {least} up")
    if value < least or value > COUNT_MAX:
        raise ValueError(f"{name} is {shown(value)}: expected a whole number from {least} to {COUNT_MAX}")


def seconds_of(name: str, value: object) -> float | None:
    """A time in milliseconds as seconds; None for one so long that it never ends."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{name} is {shown(value)}: expected a number of milliseconds")
    if not value >= 0:  # NaN too
        raise ValueError(f"{name} is {shown(value)}: expected a number of milliseconds from 0 up")
    return None if value >= NEVER_MS else value / 1000


def resume_point_of(selector: str, after: object) -> ResumePoint | None:
    """The resume point from `after` of a subscribe: a resume point, a position of the selector, or positions by subject."""
    if after is None:
        return None
    if isinstance(after, ResumePoint):
        point = after
    elif isinstance(after, Position):
        point = ResumePoint({selector: after})
    elif isinstance(after, Mapping):
        point = ResumePoint(dict(after))
    else:
        raise TypeError(
            f"after is {shown(after)}: expected a ResumePoint, a Position, or a mapping of subject to Position"
        )
    _check_positions(point.after)
    for name in ("since", "node"):
        if (value := getattr(point, name)) is not None:
            check_text(f"after.{name}", value)
    check_count("after.recent", point.recent, 0)
    check_flag("after.is_whole", point.is_whole)
    return point


def _check_positions(after: object) -> None:
    """Check the types of a resume point's fields, because anybody can construct one."""
    if not isinstance(after, Mapping):
        raise TypeError(f"after.after is {shown(after)}: expected a mapping of subject to Position")
    for subject, position in after.items():
        check_named_subject("after", subject)
        numbers = (position.epoch, position.sequence) if isinstance(position, Position) else ()
        if not numbers or not all(type(number) is int and 0 <= number < POSITION_END for number in numbers):
            raise PositionInvalid(f"after[{subject!r}] = {shown(position)}")


def check_named_subject(name: str, subject: str) -> str:
    """Check the subject; raises SubjectInvalid, which names the argument."""
    try:
        return check_subject(subject)
    except SubjectInvalid as error:
        raise SubjectInvalid(error.subject, f"is not a valid subject of {name}: it {error.reason}") from None
