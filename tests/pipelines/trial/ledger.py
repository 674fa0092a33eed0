"""What was published and what is in the files, read without the pipelines: by pyarrow, deltalake and the publishers' own account.

Imports nothing of the package that it is held against.
"""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

SUBJECTS = 5


@dataclass
class Ledger:
    """The messages that a node took for good, by number."""

    taken: set[int] = field(default_factory=set)
    next: int = 0

    def publish(self, url: str, count: int) -> None:
        """So many more, in one request; each is on the node's disk when this returns."""
        numbers = range(self.next, self.next + count)
        self.next += count
        commands = [
            {"publish": f"/trial/{number % SUBJECTS}", "content": {"number": number}, "ack": "disk"}
            for number in numbers
        ]
        body = json.dumps(commands).encode()
        request = urllib.request.Request(f"{url}/v1/messages", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            outcomes: list[dict[str, Any]] = json.load(answer)
        self.taken |= {number for number, outcome in zip(numbers, outcomes, strict=True) if "error" not in outcome}


def number_of(subject: str, content: bytes) -> int | None:
    return int(json.loads(content)["number"]) if subject.startswith("/trial/") else None


def journal_offsets(data: Path) -> dict[int, int]:
    """The offset of each number in the files of a journal that is whole."""
    found: dict[int, int] = {}
    folder = data / "journal/messages"
    for path in sorted([*folder.glob("*.arrow"), *folder.glob("*.arrows")]):
        with pa.OSFile(str(path)) as file:
            is_sealed = path.suffix == ".arrow"
            for rows in read_all(pa.ipc.open_file(file) if is_sealed else pa.ipc.open_stream(file), is_sealed):
                for row in rows.select(["journal_offset", "subject", "content"]).to_pylist():
                    if (number := number_of(row["subject"], row["content"])) is not None:
                        found[number] = row["journal_offset"]
    return found


def read_all(reader: Any, is_sealed: bool) -> list[pa.RecordBatch]:
    """The batches of a file. One that grows ends with room for more, of which pyarrow makes nothing."""
    if is_sealed:
        return [reader.get_batch(index) for index in range(reader.num_record_batches)]
    found: list[pa.RecordBatch] = []
    with contextlib.suppress(pa.ArrowInvalid):
        found.extend(reader)
    return found


def table_rows(lake: Path, name: str) -> list[dict[str, Any]]:
    """All rows of a table as it stands; none where it is not there."""
    path = str(lake.joinpath(*name.split(".")))
    if not DeltaTable.is_deltatable(path):
        return []
    rows: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().to_pylist()
    return rows


def landed_numbers(lake: Path) -> Counter[int]:
    """How often each number is in bronze.messages."""
    numbers = (number_of(row["subject"], row["content"]) for row in table_rows(lake, "bronze.messages"))
    return Counter(number for number in numbers if number is not None)


def named_offsets(lake: Path, *kinds: str) -> set[int]:
    """The offsets that the last run of `reconcile` names with one of these kinds."""
    rows = [row for row in table_rows(lake, "ops.landing") if row["stream"] == "messages"]
    last = max((row["time"] for row in rows), default=None)
    chosen = [row for row in rows if row["time"] == last and row["kind"] in kinds]
    return {offset for row in chosen for offset in range(row["first"], row["next"])}


def has_tail(lake: Path) -> bool:
    """Whether that run names bytes that cannot be read yet."""
    rows = [row for row in table_rows(lake, "ops.landing") if row["stream"] == "messages"]
    last = max((row["time"] for row in rows), default=None)
    return any(row["time"] == last and row["kind"] == "tail" for row in rows)
