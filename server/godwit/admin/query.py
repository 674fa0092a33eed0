"""Query parameters: integers within bounds, flags, texts up to a length, and choices. Anything else is answered with 400.

Owns the text of these errors, which never contains the value that was sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from ..errors import SubjectInvalid
from ..subject import check_pattern, check_subject


def read_number(request: web.Request, name: str, default: int, low: int, high: int) -> int:
    """An integer from `low` to `high`."""
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and low <= int(text[:21]) <= high):
        raise web.HTTPBadRequest(reason=f"{name} must be a whole number from {low} to {high}")
    return int(text)


def read_flag(request: web.Request, name: str) -> bool:
    """`true` or `false`; false if it is missing."""
    return read_choice(request, name, ("false", "true")) == "true"


def read_choice(request: web.Request, name: str, choices: Sequence[str]) -> str:
    """One of the choices; the first if it is missing."""
    word = request.query.get(name, choices[0])
    if word not in choices:
        raise web.HTTPBadRequest(reason=f"{name} must be one of {', '.join(choices)}")
    return word


def read_text(request: web.Request, name: str, characters_max: int) -> str:
    """A text; empty if it is missing."""
    text = request.query.get(name, "")
    if len(text) > characters_max:
        raise web.HTTPBadRequest(reason=f"{name} must be a text of at most {characters_max} characters")
    return text


def read_pattern(request: web.Request, name: str) -> str | None:
    """A pattern; None if it is missing."""
    text = request.query.get(name, "")
    try:
        return check_pattern(text) if text else None
    except SubjectInvalid as error:
        raise web.HTTPBadRequest(reason=f"{name} {error.reason}") from error


def read_subject(request: web.Request, name: str) -> str:
    """A subject; required."""
    try:
        return check_subject(request.query.get(name, ""))
    except SubjectInvalid as error:
        raise web.HTTPBadRequest(reason=f"{name} {error.reason}") from error
