"""Subjects and patterns: which are valid, and which pattern matches which subject.

A subject is one or more segments, each after a slash; a segment may be empty, as in MQTT. The wildcards `*` (one segment)
and `**` (any number of segments, only at the end) are whole segments. `/$…` belongs to the server: a leading wildcard
does not match it. Pure; the Rust core has the same rules, and both are tested with protocol/vectors.
"""

from __future__ import annotations

from .errors import SubjectInvalid
from .words import shown

SUBJECT_BYTES_MAX = 1024
"""The protocol's limit on a subject or pattern, in UTF-8 bytes; not configurable."""


def check_subject(subject: str) -> str:
    """Return the subject; raises SubjectInvalid, which names the rule that it breaks."""
    segments = _check_segments(subject)
    for segment in segments:
        if segment in ("*", "**"):
            raise SubjectInvalid(subject, "has a wildcard segment, which only a pattern may have")
    return subject


def check_pattern(pattern: str) -> str:
    """Return the pattern (a subject is valid too); raises SubjectInvalid, which names the rule that it breaks."""
    segments = _check_segments(pattern)
    if "**" in segments[:-1]:
        raise SubjectInvalid(pattern, "has ** before its last segment, where only * is allowed")
    return pattern


def is_pattern(text: str) -> bool:
    """Whether a valid pattern has a wildcard, so that it can match several subjects."""
    return any(segment in ("*", "**") for segment in text.split("/"))


def matches(pattern: str, subject: str) -> bool:
    """Whether a valid pattern matches a valid subject."""
    wanted, given = pattern.split("/")[1:], subject.split("/")[1:]
    if given[0].startswith("$") and wanted[0] in ("*", "**"):
        return False
    if wanted[-1] == "**":
        wanted.pop()
        given = given[: len(wanted)] if len(given) >= len(wanted) else given
    return len(wanted) == len(given) and all(w in ("*", g) for w, g in zip(wanted, given, strict=True))


def _check_segments(text: str) -> list[str]:
    if not isinstance(text, str):
        raise SubjectInvalid(shown(text), "is not a str")
    if not text.startswith("/"):
        raise SubjectInvalid(text, "does not begin with a slash")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise SubjectInvalid(text, "is not UTF-8") from error
    if size > SUBJECT_BYTES_MAX:
        raise SubjectInvalid(text, f"is {size} bytes long, {SUBJECT_BYTES_MAX} are allowed")
    segments = text.split("/")[1:]
    if segments == [""]:
        raise SubjectInvalid(text, "has no segment")
    if any(_is_control(character) for character in text):
        raise SubjectInvalid(text, "has a control character")
    return segments


def _is_control(character: str) -> bool:
    code = ord(character)
    return code < 0x20 or 0x7F <= code <= 0x9F
