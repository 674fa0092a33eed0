"""One reading a second, one batch of pushes, a clock that never runs backwards, and statistics that outlive the node."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog

from godwit.codes import Code
from godwit.config.dispatch import DISPATCH_PATTERNS
from godwit.engine import Draft, Statistic
from godwit.model import Position
from godwit.monitoring import monitor as module
from godwit.monitoring.monitor import PATTERNS, Clock, Monitor, list_patterns
from godwit.monitoring.window_file import WindowFile
from godwit.monitoring.windows import WINDOWS


class World:
    """A node's counters, its two clocks, and what was published."""

    def __init__(self) -> None:
        self.mono_s, self.wall_s, self.connects = 100.0, 1_700_000_000.0, 0
        self.batches: list[Sequence[Draft]] = []
        self.answer: Position | int = Position(1, 1)
        self.has_failed = False
        self.sockets_refused = 0
        self.written: list[tuple[int, list[Statistic]]] = []

    def stats(self) -> Mapping[str, Any]:
        if self.has_failed:
            raise RuntimeError("no figures today")
        protocols = {"json": {"connects": self.connects, "connections": 1}}
        return {"shards": [{"protocols": protocols, "sockets_refused": self.sockets_refused}]}

    def publish(self, drafts: Sequence[Draft]) -> Sequence[Position | int]:
        self.batches.append(drafts)
        return [self.answer for _ in drafts]

    def make(self, file: WindowFile | None = None, *, pushes: bool = True, writes: bool = False) -> Monitor:
        clock = Clock(lambda: self.mono_s, lambda: self.wall_s)
        process = {"memory_bytes": 5.0}
        publish = self.publish if pushes else None
        write = self.write if writes else None
        return Monitor("n1", self.stats, publish, file, read_process=lambda: process, clock=clock, write_stats=write)

    def write(self, time_ms: int, rows: list[Statistic]) -> bool:
        self.written.append((time_ms, rows))
        return True

    def pass_second(self, connects: int = 0, seconds: float = 1.0) -> None:
        self.mono_s += seconds
        self.wall_s += seconds
        self.connects += connects


def find(drafts: Sequence[Draft], subject: str) -> Any:
    return next((json.loads(draft.content) for draft in drafts if draft.subject == subject), None)


def test_now_is_the_last_second_and_each_turn_is_one_batch() -> None:
    world = World()
    monitor = world.make()
    monitor.turn()
    world.pass_second(connects=7)
    monitor.turn()
    assert len(world.batches) == 2 and all(draft.retain for draft in world.batches[1])
    assert find(world.batches[1], "/$node/n1/now")["connects_per_second"] == 7
    assert find(world.batches[1], "/$node/n1/protocols/json/now")["connections"] == 1
    shown = monitor.show(["1min"])
    assert shown["now"]["node"]["connects_per_second"] == 7 and shown["time"] == 1_700_000_001_000
    assert shown["windows"]["1min"]["node"]["connects_per_second"] == {"max": 7, "mean": 7, "deviation": 0}


def test_all_windows_are_pushed_at_first_and_then_at_their_pace() -> None:
    world = World()
    monitor = world.make()
    for _ in range(3):
        monitor.turn()
        world.pass_second()
    first = {draft.subject.rpartition("/")[2] for draft in world.batches[1]}
    assert first == {"now", *WINDOWS}
    assert {draft.subject.rpartition("/")[2] for draft in world.batches[2]} <= {"now", "1min", "5min", "15min"}
    assert {draft.subject.rpartition("/")[2] for draft in world.batches[0]} == {"now"}


def test_nothing_is_pushed_where_the_operator_does_not_want_it() -> None:
    world = World()
    monitor = world.make(pushes=False)
    monitor.turn()
    world.pass_second(connects=2)
    monitor.turn()
    assert not world.batches and monitor.show()["now"]["node"]["connects_per_second"] == 2


def test_a_reading_after_a_long_time_weighs_little_and_is_a_true_rate() -> None:
    world = World()
    monitor = world.make()
    monitor.turn()
    world.pass_second(connects=600, seconds=60.0)
    monitor.turn()
    window = monitor.show(["1h"])["windows"]["1h"]
    assert window["covered_seconds"] == module.GAP_S_MAX
    assert window["node"]["connects_per_second"]["mean"] == 10


def test_windows_outlive_the_node_and_a_clock_set_back(tmp_path: Path) -> None:
    world = World()
    monitor = world.make(WindowFile(tmp_path))
    for _ in range(200):
        monitor.turn()
        world.pass_second(connects=3)
    world.pass_second(seconds=module.SAVE_INTERVAL_S)
    monitor.turn()
    before = monitor.show(["15mo"])["windows"]["15mo"]
    world.wall_s -= 1_000_000.0
    again = world.make(WindowFile(tmp_path))
    assert again.show(["15mo"])["windows"]["15mo"] == before
    world.connects = 0
    again.turn()
    world.pass_second(connects=3)
    again.turn()
    after = again.show(["15mo"])["windows"]["15mo"]
    assert after["covered_seconds"] == before["covered_seconds"] + 1
    assert after["node"]["connects_per_second"]["max"] == 3


def test_statistics_that_cannot_be_read_are_said_and_not_died_of(tmp_path: Path) -> None:
    (tmp_path / "statistics").write_bytes(b"rubbish")
    with structlog.testing.capture_logs() as logs:
        monitor = World().make(WindowFile(tmp_path))
    assert monitor.show(["1h"])["windows"]["1h"]["covered_seconds"] == 0
    assert [event["event"] for event in logs] == ["statistics_lost"]


def test_a_disk_that_takes_nothing_is_said_and_not_died_of(tmp_path: Path) -> None:
    world = World()
    monitor = world.make(WindowFile(tmp_path / "gone"))
    world.pass_second(seconds=module.SAVE_INTERVAL_S)
    with structlog.testing.capture_logs() as logs:
        monitor.turn()
    assert [event["event"] for event in logs] == ["statistics_not_saved"]


def test_refused_pushes_are_said_once() -> None:
    world = World()
    monitor = world.make()
    refused = int(Code.SUBJECTS_TOO_MANY)
    with structlog.testing.capture_logs() as logs:
        for answer in (refused, refused, Position(1, 1), refused):
            world.answer = answer
            monitor.turn()
            world.pass_second()
    assert [event["event"] for event in logs] == ["statistics_refused"] * 2


def test_sockets_without_a_descriptor_are_one_line_a_second() -> None:
    world = World()
    monitor = world.make()
    with structlog.testing.capture_logs() as logs:
        for refused in (0, 3, 3, 10):
            world.sockets_refused = refused
            monitor.turn()
            world.pass_second()
    assert [(line["event"], line["count"]) for line in logs] == [("sockets_refused", 3), ("sockets_refused", 7)]


async def test_readings_that_fail_are_told_once_and_do_not_end_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERVAL_S", 0.001)
    world, read_again = World(), asyncio.Event()
    world.has_failed = True
    monitor, loop = world.make(), asyncio.get_running_loop()
    whole_turn = monitor.turn
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        world.has_failed = turns <= 3
        whole_turn()
        if turns > 4:  # what the fourth had to say has been said
            loop.call_soon_threadsafe(read_again.set)

    monkeypatch.setattr(monitor, "turn", turn)
    with structlog.testing.capture_logs() as logs:
        monitor.start()
        async with asyncio.timeout(60):
            await read_again.wait()
        await monitor.stop()
        await monitor.stop()
    assert [event["event"] for event in logs] == ["statistics_failed", "statistics_recovered"] and world.batches


def test_the_operators_word_on_a_pattern_goes_before_the_nodes_own() -> None:
    assert list_patterns([]) == [*PATTERNS, *DISPATCH_PATTERNS]
    assert "/$node/**" not in [pattern["pattern"] for pattern in list_patterns(["/$node/**", "/a"])]


def test_figures_are_written_down_once_a_minute_in_one_batch() -> None:
    world = World()
    monitor = world.make(pushes=False, writes=True)
    monitor.turn()
    for _ in range(120):
        world.pass_second(connects=3)
        monitor.turn()
    assert len(world.written) == 2
    time_ms, rows = world.written[1]
    assert 0 <= world.wall_s - time_ms / 1000 < 60
    found = {(metric, scope, window): values for metric, scope, _, window, _, values in rows}
    assert found["connects_per_second", "node", "now"] == (3.0, None, None, None)
    assert found["connects_per_second", "node", "1min"][1] == 3.0


def test_own_subjects_are_those_that_were_accepted() -> None:
    world = World()
    monitor = world.make()
    world.answer = Code.NODE_BUSY
    monitor.turn()
    assert world.batches and monitor.own_subjects == 0
    world.answer = Position(1, 1)
    for _ in range(2):
        world.mono_s += 1
        monitor.turn()
    assert monitor.own_subjects == len({draft.subject for batch in world.batches[1:] for draft in batch}) > 0
