"""Counts as a person reads them: one row, not `1 rows`. Pure."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 row`, `2,000 rows`; a plural that is more than an s is given."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
