"""Checks that a query's checkpoint is whole, before Spark reads it: a power cut or a person may have damaged it.

Owns the rules. If `metadata` is missing, Spark creates a new identity, and the tables' log then accepts a batch again
that it already has. Spark counts batches by the newest file, even if earlier ones are damaged. Invariant: a checkpoint
that passes has every file that Spark continues from, and none of them is empty or truncated.
"""

from __future__ import annotations

import json
from pathlib import Path

from ..errors import CheckpointBroken

_VERSION = "v1"


def check_whole(checkpoint: Path) -> None:
    """Raises CheckpointBroken, with the remedy, if a file of the checkpoint is missing, empty or truncated."""
    if why := find_damage(checkpoint):
        raise CheckpointBroken(f"{checkpoint} is incomplete: {why}. {remedy_of(checkpoint)}")


def remedy_of(checkpoint: Path) -> str:
    """The remedy for a checkpoint that cannot be used any more."""
    if checkpoint.name == "land-kafka":
        return "Remove the folder, and run the job again: it reads the topics from their beginning and leaves out what landed"
    if checkpoint.name.startswith("land-"):
        return "Remove the folder, and run the job again: it continues after the last row of its table"
    return "Remove the folder and the tables that its job writes, and run the job again: they are filled from the start"


def find_damage(checkpoint: Path) -> str:
    """Describes the damage of a checkpoint; empty if it is whole, or if no query has begun it."""
    begun, done = numbers_of(checkpoint / "offsets"), numbers_of(checkpoint / "commits")
    metadata = checkpoint / "metadata"
    if not metadata.exists():
        return f"{metadata.name} is missing" if begun or done else ""
    if not is_identity(metadata):
        return f"{metadata.name} is empty or truncated"
    if done and (not begun or done[-1] > begun[-1]):
        return f"offsets/{done[-1]} is missing, which commits has"
    if begun and begun[-1] > 0 and begun[-1] - 1 not in begun:
        return f"offsets/{begun[-1] - 1} is missing"  # a batch begins where the one before it ended
    for folder, numbers in (("offsets", begun), ("commits", done)):
        missing = sorted({*range(numbers[0], numbers[-1] + 1)} - {*numbers}) if numbers else []
        if missing:
            return f"{folder}/{missing[0]} is missing"
    files = [*((checkpoint / "offsets" / str(each), 3) for each in begun)]
    files += [*((checkpoint / "commits" / str(each), 2) for each in done)]
    for file, lines in files:
        if not is_entry(file, lines):
            return f"{file.relative_to(checkpoint)} is empty or truncated"
    if empty := find_empty(checkpoint):
        return f"{empty.relative_to(checkpoint)} is empty"
    return ""


def numbers_of(folder: Path) -> list[int]:
    """The batches for which a folder has a file."""
    return sorted(int(file.name) for file in folder.glob("*") if file.name.isascii() and file.name.isdigit())


def is_identity(metadata: Path) -> bool:
    try:
        return bool(json.loads(metadata.read_text("utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def is_entry(file: Path, lines_min: int) -> bool:
    """True if a file of Spark's logs has its version and whole lines of JSON. A source without rows writes a hyphen."""
    try:
        version, *lines = file.read_text("utf-8").splitlines()
        return version == _VERSION and len(lines) >= lines_min - 1 and all(is_line(line) for line in lines)
    except (OSError, ValueError):
        return False


def is_line(line: str) -> bool:
    try:
        return line == "-" or isinstance(json.loads(line), dict)
    except ValueError:
        return False


def find_empty(checkpoint: Path) -> Path | None:
    """An empty file of the sources or of the state. Files that were written completely are never empty."""
    files = (file for of in ("sources", "state") for file in sorted((checkpoint / of).rglob("*")))
    return next((file for file in files if file.is_file() and not file.name.startswith(".") and is_empty(file)), None)


def is_empty(file: Path) -> bool:
    return file.stat().st_size == 0
