"""`visible = "journaled"` on a real node: every message that a subscriber received is in the journal's files at that moment, and still
there when the node is killed under load and starts again.

Other messages are written only after seconds here, so that a message that is sent too early is found missing.
"""

from __future__ import annotations

import json
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.pipelines.node.serving import node_process

SUBJECTS = ("/orders/a", "/orders/b", "/orders/c")
TIMEOUT_S = 60
SETTINGS = """
[journal]
write_interval_ms = 10_000
sync_interval_ms = 60_000
segment_age_ms_max = 3_600_000

[limits]
log_messages_max = 1_000_000

[monitoring]
push = false

[drain]
spread_ms = 0
grace_ms = 200

[patterns."/orders/**"]
visible = "journaled"
"""
Row = dict[str, Any]


@pytest.fixture
def config(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "node.toml").write_text(SETTINGS)
    return "--config", str(tmp_path / "node.toml")


def publish(url: str, *messages: tuple[str, Any], token: str = "") -> list[str]:
    """Accepted, and no more than that: the publisher waits for no disk. Returns the positions."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    body = json.dumps([{"publish": subject, "content": content} for subject, content in messages]).encode()
    asked = urllib.request.Request(f"{url}/v1/messages", body, headers)
    with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:
        return [row["at"] for row in json.load(answer)]


def follow(url: str, selector: str, after: str | None = None) -> Iterator[Row]:
    """What an event stream says until it ends; the first is the answer to the subscription."""
    headers = {} if after is None else {"Last-Event-ID": after}
    asked = urllib.request.Request(f"{url}/v1/stream?subject={urllib.parse.quote(selector)}", headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as rows_read:
            while line := rows_read.readline():
                if line.startswith(b"data: ") and line.endswith(b"\n"):
                    yield json.loads(line.removeprefix(b"data: "))
    except (ConnectionError, HTTPException):
        return  # the node was killed


def read_after(url: str, subject: str, place: str) -> list[Row]:
    """Everything that the node serves of a subject after a position, page by page."""
    found: list[Row] = []
    while True:
        asked = f"{url}/v1/messages?subject={subject}&after={place}&limit=1000"
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:
            page = [row for row in json.load(answer) if "message" in row]
            place = answer.headers["Godwit-Position"]
        if not page:
            return found
        found += page


def read_now(folder: Path) -> list[Row]:
    """The rows of a stream while the node writes it."""
    rows: list[Row] = []
    for file in sorted(folder.glob("*.arrows")):  # the open ones first: what is sealed meanwhile is in both
        with suppress(OSError, pa.ArrowInvalid), pa.memory_map(str(file)) as source:  # sealed since, or half a batch
            for batch in pa.ipc.open_stream(source):
                rows += batch.to_pylist()
    for file in sorted(folder.glob("*.arrow")):
        rows += pa.ipc.open_file(str(file)).read_all().to_pylist()
    return list({row["journal_offset"]: row for row in rows}.values())


def read_contents(folder: Path) -> dict[tuple[str, str], Any]:
    """By subject and position."""
    rows = read_now(folder)
    return {(row["subject"], f"{row['epoch']}.{row['sequence']}"): json.loads(row["content"]) for row in rows}


def test_who_is_shown_a_message_finds_it_in_the_files_and_in_order(tmp_path: Path, config: tuple[str, str]) -> None:
    folder, count = tmp_path / "data/journal/messages", 90
    with node_process(tmp_path, *config) as (url, _), closing(follow(url, "/**")) as rows_read:
        assert next(rows_read)["ok"] == "subscribed"
        for first in range(0, count, 9):
            batch = [(SUBJECTS[n % 3], n) for n in range(first, first + 9)]
            places = publish(url, *batch)
            for (subject, content), place in zip(batch, places, strict=True):
                shown = next(row for row in rows_read if "message" in row)
                assert (shown["message"], shown["at"], shown["content"]) == (subject, place, content)
                assert read_contents(folder).get((subject, place)) == content, f"{subject} {place} was shown too early"
        (place,) = publish(url, ("/plain/a", -1))
        shown = next(row for row in rows_read if "message" in row)
        assert (shown["message"], shown["at"]) == ("/plain/a", place)
        assert ("/plain/a", place) not in read_contents(folder), "a message of another pattern waits for no disk"


class Reader(threading.Thread):
    """Takes what is shown of one selector until the node dies."""

    def __init__(self, url: str, selector: str, enough: int) -> None:
        super().__init__(daemon=True)
        self.rows_read, self.enough = follow(url, selector), enough
        assert next(self.rows_read)["ok"] == "subscribed"
        self.seen: list[tuple[str, str, Any]] = []
        self.has_enough = threading.Event()

    def run(self) -> None:
        for row in self.rows_read:
            if "message" in row:
                self.seen.append((row["message"], row["at"], row["content"]))
                if len(self.seen) == self.enough:
                    self.has_enough.set()


class Publisher(threading.Thread):
    """Publishes on one subject until the node dies."""

    def __init__(self, url: str, subject: str) -> None:
        super().__init__(daemon=True)
        self.url, self.subject = url, subject

    def run(self) -> None:
        number = 0
        try:
            while True:
                publish(self.url, *((self.subject, n) for n in range(number, number + 5)))
                number += 5
        except (OSError, HTTPException):
            return


def kill_under_load(folder: Path, config: tuple[str, str]) -> dict[str, list[tuple[str, str, Any]]]:
    """What readers of each selector had been shown when the node was killed."""
    with node_process(folder, *config) as (url, process):
        readers = {selector: Reader(url, selector, 300) for selector in ("/orders/**", *SUBJECTS)}
        threads = [*readers.values(), *(Publisher(url, subject) for subject in SUBJECTS)]
        for thread in threads:
            thread.start()
        try:
            for reader in readers.values():
                assert reader.has_enough.wait(TIMEOUT_S), len(reader.seen)
        finally:
            process.kill()
        for thread in threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()
    return {selector: reader.seen for selector, reader in readers.items()}


def test_nothing_that_was_shown_is_lost_when_the_node_is_killed_under_load(
    tmp_path: Path, config: tuple[str, str]
) -> None:
    seen = kill_under_load(tmp_path, config)
    with node_process(tmp_path, *config) as (url, _):
        epoch = seen[SUBJECTS[0]][0][1].split(".")[0]
        kept = {subject: {row["at"]: row for row in read_after(url, subject, f"{epoch}.0")} for subject in SUBJECTS}
        for subject, place, content in (each for rows in seen.values() for each in rows):
            assert place in kept[subject], f"{subject} {place} was shown, and is gone"
            assert kept[subject][place]["content"] == content
        for subject in SUBJECTS:
            shown = [int(place.split(".")[1]) for _, place, _ in seen[subject]]
            assert shown == list(range(1, len(shown) + 1)), "in order, without a loss"
            last = seen[subject][-1][1]
            with urllib.request.urlopen(f"{url}/v1/snapshot?subject={subject}", timeout=TIMEOUT_S) as answer:
                newest = list(kept[subject].values())[-1]
                assert json.load(answer) == newest["content"] >= seen[subject][-1][2]
            rest = list(kept[subject])[len(shown) :]
            with closing(follow(url, subject, after=last)) as rows_read:
                assert next(rows_read)["ok"] == "subscribed"
                for place in rest:
                    assert next(rows_read)["at"] == place
                (fresh,) = publish(url, (subject, -1))
                item, newest_place = next(rows_read), list(kept[subject])[-1]
                assert (item["at"], item["after"]) == (fresh, newest_place), "nothing is missing between the two"
                assert int(fresh.split(".")[0]) > int(epoch), "no position is given twice"
