"""A real node's journal, read by the same source as simulated ones: every publish is there, byte for byte, with a valid checksum."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from godwit_pipelines.errors import PublishFailed
from godwit_pipelines.publish.commands import bodies_of, command_of, key_of
from godwit_pipelines.publish.rest import Node
from godwit_pipelines.source.columns import stream_schema
from godwit_pipelines.source.parts import Journals
from godwit_pipelines.source.rows import Reading, read_part
from tests.pipelines.node.serving import START_S, running_node
from tests.pipelines.test_rows import WANTED

COUNT = 2000


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    with running_node(tmp_path) as url:
        yield url, tmp_path / "data"


def read(data: Path, stream: str = "messages") -> list[dict[str, object]]:
    journals = Journals(str(data), stream)
    journals.look()
    reading = Reading(stream_schema("messages"), WANTED)
    return [
        row
        for part in journals.parts({}, journals.nexts())
        for batch in read_part(part, reading)
        for row in batch.to_pylist()
    ]


def rooms(data: Path) -> list[dict[str, object]]:
    """What the test published; a node also publishes its own figures."""
    found = read(data) if (data / "journal/messages").is_dir() else []
    return [row for row in found if str(row["subject"]).startswith("/rooms/")]


def test_what_was_published_is_in_the_journal_as_it_was(served: tuple[str, Path]) -> None:
    url, data = served
    rows = [
        {"subject": f"/rooms/{index % 7}", "content": json.dumps({"n": index}), "kind": "json" if index % 3 else "text"}
        for index in range(COUNT)
    ]
    node = Node(url)
    for body in bodies_of(
        [command_of(row, key_of("test-of-journal", 0, 0, index), "") for index, row in enumerate(rows)], 200
    ):
        node.send(body)
    again = [command_of(rows[0], key_of("test-of-journal", 0, 0, 0), "")]
    node.send(again)
    node.close()
    assert node.repeats == 1
    deadline = time.monotonic() + START_S
    while len(found := rooms(data)) < COUNT and time.monotonic() < deadline:
        time.sleep(0.05)  # rows are written by interval; the journal has no way to tell a reader
    everything = read(data)
    assert not any(row["fault"] for row in everything)
    assert [row["journal_offset"] for row in everything] == list(range(len(everything)))
    assert [(row["subject"], row["kind"]) for row in found] == [(row["subject"], row["kind"]) for row in rows]
    assert [bytes(row["content"]).decode() for row in found] == [row["content"] for row in rows]  # type: ignore[arg-type]  # rows of mixed types
    third = [row["sequence"] for row in found if row["subject"] == "/rooms/3"]
    assert third == list(range(1, len(third) + 1))


def test_whatever_a_node_takes_as_a_message_is_published_to_it_again(served: tuple[str, Path]) -> None:
    url, data = served
    rows: list[dict[str, Any]] = [
        {"content": b"\xff\0" * 524_288, "kind": "bytes"},
        {"content": "é" * 524_288, "kind": "text"},
    ]
    rows += [
        {"content": json.dumps("é" * 524_287, ensure_ascii=False), "kind": "json"},
        {"content": "1", "kind": "json"},
    ]
    node = Node(url)
    for _ in range(2):
        large = [
            command_of({"subject": "/rooms/ü 1", **row}, key_of("test-of-size", 0, 0, index), "disk")
            for index, row in enumerate(rows)
        ]
        for body in bodies_of(large, 200):
            node.send(body)
    assert node.repeats == len(rows)
    wanted = [row["content"] if isinstance(row["content"], bytes) else row["content"].encode() for row in rows]
    assert [(row["kind"], row["content"]) for row in rooms(data)] == [
        (row["kind"], content) for row, content in zip(rows, wanted, strict=True)
    ]
    over = command_of(
        {"subject": "/rooms/2", "content": b"x" * 1_048_577, "kind": "bytes"}, key_of("over", 0, 0, 0), ""
    )
    with pytest.raises(PublishFailed, match=r"refused to publish /rooms/2: 413 \w+TooBig"):
        node.send([over])
    node.close()
