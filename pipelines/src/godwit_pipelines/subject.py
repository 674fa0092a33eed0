"""Checks subjects and patterns in options of jobs, by the node's rules, before Spark starts.

Pure. The package does not import the node's own code; protocol/vectors tests both.
"""

from __future__ import annotations

from .errors import ConfigInvalid

BYTES_MAX = 1024
NO_SUBJECT = r"^(?!/)|//|/\z|/\*\*?(/|\z)|[\x00-\x1f\x7f-\x9f]"
"""A Java regular expression, for columns, that matches in each text that is not a valid subject."""


def check_subject(option: str, text: str) -> None:
    """Raises ConfigInvalid if no message can be published on or below `text`. Only MQTT can create empty segments."""
    _check_segments(option, text)
    if "" in text.split("/")[1:]:
        hint = f"did you mean {text.rstrip('/')}?" if text.rstrip("/") else ""
        raise ConfigInvalid(f"--option {option}", text, "has an empty segment", hint=hint)
    if any(segment in ("*", "**") for segment in text.split("/")):
        raise ConfigInvalid(f"--option {option}", text, "has a wildcard, which only patterns can have")
    if text.startswith("/$"):
        raise ConfigInvalid(f"--option {option}", text, "is reserved for the node")


def check_pattern(option: str, text: str) -> None:
    """Raises ConfigInvalid if `text` is neither a subject nor a pattern."""
    _check_segments(option, text)
    if "**" in text.split("/")[:-1]:
        raise ConfigInvalid(f"--option {option}", text, "has ** before its last segment, where only * is allowed")


def check_beginning(option: str, text: str) -> None:
    """Raises ConfigInvalid if no subject can begin with `text`."""
    _check_slash(option, text)
    if "*" in text:
        raise ConfigInvalid(f"--option {option}", text, "must be a prefix of subjects, not a pattern", hint="/stocks/")


def _check_slash(option: str, text: str) -> None:
    if not text.startswith("/"):
        raise ConfigInvalid(f"--option {option}", text, "does not begin with a slash", hint=f"did you mean /{text}?")


def _check_segments(option: str, text: str) -> None:
    _check_slash(option, text)
    if text == "/":
        raise ConfigInvalid(f"--option {option}", text, "has no segment")
    if len(text.encode()) > BYTES_MAX:
        raise ConfigInvalid(f"--option {option}", text[:40] + "…", f"is longer than {BYTES_MAX} bytes")
    if any(ord(character) < 0x20 or 0x7F <= ord(character) <= 0x9F for character in text):
        raise ConfigInvalid(f"--option {option}", text, "has a control character")
