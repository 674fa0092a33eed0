"""Chooses a receiver's locale among the existing ones. Pure."""

from __future__ import annotations

from collections.abc import Collection


def choose_locale(wanted: str, there: Collection[str]) -> str:
    """The locale: `es-MX` falls back to `es`, and that to the default, which is empty."""
    parts = wanted.replace("_", "-").split("-")
    known = {locale.lower(): locale for locale in there}
    for length in range(len(parts), 0, -1):
        found = known.get("-".join(parts[:length]).lower())
        if found:
            return found
    return ""
