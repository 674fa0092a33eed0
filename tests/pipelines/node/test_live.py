"""Jobs that publish, end to end with a real node: their results appear on subjects, once, in order."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from godwit_pipelines.publish.commands import bodies_of, command_of
from godwit_pipelines.publish.rest import Node
from tests.pipelines.driven import kill, run, start
from tests.pipelines.node.serving import read_subject, running_node

pytestmark = pytest.mark.long
WAIT_S = 240
SUBJECTS = ("/stocks/a", "/stocks/b", "/stocks/c")


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with running_node(tmp_path) as address:
        yield address


def publish(url: str, prices: range, name: str = "first") -> None:
    """A price after the other, on one subject after the other."""
    rows = [
        {
            "subject": SUBJECTS[n % len(SUBJECTS)],
            "content": json.dumps({"price": n}),
            "key": f"{name}-price-number-{n:06}",
        }
        for n in prices
    ]
    node = Node(url)
    for body in bodies_of([command_of(row, "", "disk") for row in rows], 10):
        node.send(body)
    node.close()


def words_of(job: str, folder: Path, url: str, *options: str) -> tuple[str, ...]:
    words = ("run", job, "--journal", str(folder / "data"), "--lake", str(folder / "lake"), "--master", "local[2]")
    return *words, "--set", f"node.url={url}", *itertools.chain(*(("--option", each) for each in options))


def expected_bars(url: str, subject: str) -> list[dict[str, Any]]:
    """The bars of a subject, from what the node itself says of its messages: `time` in milliseconds."""
    found = []
    for second, rows in itertools.groupby(read_subject(url, subject), lambda row: row["time"] // 1000):
        prices = [row["content"]["price"] for row in rows]
        ends = {"time": second * 1000, "until": second * 1000 + 1000, "open": prices[0], "close": prices[-1]}
        found.append(ends | {"high": max(prices), "low": min(prices), "count": len(prices)})
    return found


def last_bars(url: str, subject: str) -> list[dict[str, Any]]:
    """The last that was published of each window."""
    return list({row["content"]["time"]: row["content"] for row in read_subject(url, f"/bars/1s{subject}")}.values())


def test_bars_come_back_live_and_lie_in_their_table(tmp_path: Path, url: str) -> None:
    log = tmp_path / "said"
    words = words_of("ohlc", tmp_path, url, "field=$.price", "publish=/bars/1s", "subjects=/stocks/")
    publish(url, range(30))
    process = start(*words, "--every", "200ms", log=log)
    try:
        deadline = time.monotonic() + WAIT_S
        for first in range(30, 300, 30):
            publish(url, range(first, first + 30))
            while not last_bars(url, "/stocks/a") and time.monotonic() < deadline:
                assert process.poll() is None, log.read_text()
                time.sleep(0.1)  # the next only once the job is at work: so bars grow under it
        while any(last_bars(url, each) != expected_bars(url, each) for each in SUBJECTS):
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        process.terminate()
        assert process.wait(WAIT_S) == 0, log.read_text()
    finally:
        kill(process)
    before = [read_subject(url, f"/bars/1s{each}") for each in SUBJECTS]
    assert run(*words, "--once", log=log) == 0, log.read_text()
    assert [read_subject(url, f"/bars/1s{each}") for each in SUBJECTS] == before
    kept = (
        DeltaTable(str(tmp_path / "lake/gold/ohlc"))
        .to_pyarrow_table()
        .sort_by([("subject", "ascending"), ("start", "ascending")])
    )
    wanted = [bar for each in SUBJECTS for bar in expected_bars(url, each)]
    names = ("open", "high", "low", "close", "count")
    assert [[row[name] for name in names] for row in kept.to_pylist()] == [
        [bar[name] for name in names] for bar in wanted
    ]


def test_history_is_replayed_once_and_in_order_though_the_job_is_killed(tmp_path: Path, url: str) -> None:
    log = tmp_path / "said"
    publish(url, range(300))
    publish(url, range(300, 330), name="second")
    assert run(*words_of("land", tmp_path, url, "streams=messages"), "--once", log=log) == 0, log.read_text()

    log.write_text("")
    assert run(*words_of("replay", tmp_path, url, "subjects=/stocks/**", "below=/again"), log=log) == 0
    assert "would publish 330 messages on 3 subjects" in log.read_text()
    assert not any(read_subject(url, f"/again{each}") for each in SUBJECTS)

    options = ("subjects=/stocks/*", "below=/again", "name=first", "publish=yes")
    process = start(*words_of("replay", tmp_path, url, *options, "rate=100"), log=log)
    try:
        deadline = time.monotonic() + WAIT_S
        while sum(len(read_subject(url, f"/again{each}")) for each in SUBJECTS) == 0:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
    finally:
        kill(process)
    assert 0 < sum(len(read_subject(url, f"/again{each}")) for each in SUBJECTS) < 330
    for _ in range(2):
        assert run(*words_of("replay", tmp_path, url, *options), log=log) == 0, log.read_text()
        for each in SUBJECTS:
            again = [row["content"] for row in read_subject(url, f"/again{each}")]
            assert again == [row["content"] for row in read_subject(url, each)]
