"""The published messages and the contents of the files, read without the pipelines: by pyarrow, deltalake and the publishers' records.

Imports nothing of the package that it checks.
"""

from __future__ import annotations

import contextlib
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

SUBJECTS = 5
ALL = "/trial/**"


@dataclass
class Ledger:
    """The messages that a node took for good, by number."""

    taken: set[int] = field(default_factory=set)
    next: int = 0
    received: Counter[int] = field(default_factory=Counter)
    """What reached a subscriber of everything, over all lives."""

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


class Listener:
    """A subscriber of a pattern by Server-Sent Events, which writes down every number that reaches it. It asks for no snapshots: one that
    is read after the subscription began stands for the messages up to then."""

    def __init__(self, url: str, selector: str) -> None:
        self.received: Counter[int] = Counter()
        self._answer = urllib.request.urlopen(f"{url}/v1/stream?subject={selector}&snapshot=false", timeout=60)
        self._events = self._read()
        assert next(self._events)["event"] == "subscribed"

    def _read(self) -> Iterator[dict[str, str]]:
        event: dict[str, str] = {"event": "", "data": ""}
        for line in self._answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name in event:
                event[name] += value
            elif not name:
                yield event
                event = {"event": "", "data": ""}

    def take(self, count: int) -> None:
        """Returns when so many more messages have come. A gap would be a fault of the node: nothing is evicted here."""
        for _ in range(count):
            event = next(event for event in self._events if event["data"] and event["event"] != "resume_token")
            assert not event["event"], event
            self.received[int(json.loads(event["data"])["content"]["number"])] += 1

    def close(self) -> None:
        self._answer.close()


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


def delivered(data: Path, selector: str) -> int:
    """How many messages the files of a journal that is whole say were handed over to who subscribed to a selector."""
    found, folder = 0, data / "journal/deliveries"
    for path in sorted([*folder.glob("*.arrow"), *folder.glob("*.arrows")]):
        with pa.OSFile(str(path)) as file:
            is_sealed = path.suffix == ".arrow"
            for rows in read_all(pa.ipc.open_file(file) if is_sealed else pa.ipc.open_stream(file), is_sealed):
                found += sum(row["count"] for row in rows.to_pylist() if row["selector"] == selector)
    return found


def wait_delivered(data: Path, selector: str, before: int, seconds: float = 60) -> None:
    """Returns when the files of a running node say that more than `before` was handed over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(pa.ArrowInvalid, FileNotFoundError):  # a file that was just begun, or sealed meanwhile
            if delivered(data, selector) > before:
                return
        time.sleep(0.02)
    raise AssertionError(f"the journal has no row of deliveries of {selector} after {seconds} s")


def audited(lake: Path, selector: str) -> int:
    """How many the audit says were."""
    rows = table_rows(lake, "gold.audit_ranges")
    return sum(int(row["messages"]) for row in rows if row["selector"] == selector)


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
