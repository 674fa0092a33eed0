"""The positions of queries, read from their checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .checkpoints import check_whole
from .offsets import Passed, from_offset, runs_of


def find_runs(checkpoint: Path, stream: str) -> dict[str, list[Passed]]:
    """The runs that a query has come past by its checkpoint, by node: up to its last batch, or where that began if it was cut short."""
    last = last_batch(checkpoint, "offsets")
    if last is None:
        return {}
    offset = offset_of(checkpoint, last)
    from_offset(stream, offset)
    if (checkpoint / "commits" / str(last)).exists():
        return runs_of(offset)
    if (checkpoint / "offsets" / str(last - 1)).exists():
        return runs_of(offset_of(checkpoint, last - 1))
    return runs_of(offset, "before") if "before" in offset else {}


def has_taken_rows(checkpoint: Path) -> bool:
    """True if the last completed batch had rows of the journals."""
    last = last_batch(checkpoint, "commits")
    offset = {} if last is None else offset_of(checkpoint, last)
    begun = offset.get("begun", {})
    return any(next > begun.get(node, next) for node, next in offset.get("nodes", {}).items())


def last_batch_of_rows(checkpoint: Path) -> int | None:
    """The last batch that is done and brought rows of the journals to write, of those that the checkpoint still has."""
    done = {int(file.name) for file in checkpoint.glob("commits/*") if file.name.isdecimal()}
    for batch in sorted((each for each in done if (checkpoint / "offsets" / str(each)).exists()), reverse=True):
        offset = offset_of(checkpoint, batch)
        if "tasks" not in offset:
            return None
        offsets = sum(next - offset["begun"].get(node, next) for node, next in offset["nodes"].items())
        if offsets > offset.get("absent", 0):
            return batch
    return None


def find_kafka_place(checkpoint: Path) -> dict[str, int]:
    """Up to which offset a query of Kafka has come, by node, which is a topic's partition: after the last batch that is done."""
    last = last_batch(checkpoint, "commits")
    topics = {} if last is None else offset_of(checkpoint, last)
    partitions = {topic: offset for topic, offset in topics.items() if isinstance(offset, dict)}
    return {f"{topic}/{number}": int(next) for topic, offset in partitions.items() for number, next in offset.items()}


def query_id(checkpoint: Path) -> str:
    """The name under which a query commits its batches; empty before it has one."""
    try:
        return str(json.loads((checkpoint / "metadata").read_text("utf-8"))["id"])
    except (FileNotFoundError, ValueError, KeyError):
        return ""


def last_batch(checkpoint: Path, of: str) -> int | None:
    """The last batch that a checkpoint has begun (`offsets`) or done (`commits`)."""
    return max((int(file.name) for file in checkpoint.glob(f"{of}/*") if file.name.isdecimal()), default=None)


def offset_of(checkpoint: Path, batch: int) -> dict[str, Any]:
    """The end of a batch, as the source of its query wrote it."""
    try:
        offset: dict[str, Any] = json.loads((checkpoint / "offsets" / str(batch)).read_text("utf-8").splitlines()[-1])
    except (FileNotFoundError, ValueError, IndexError):
        check_whole(checkpoint)
        raise
    return offset
