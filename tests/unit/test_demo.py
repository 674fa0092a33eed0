"""The demonstration publishes what this host has, under legal subjects, and survives odd sensors."""

import asyncio
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from godwit.demo import Demo, Telemetry, make_segment
from godwit.engine import Draft
from godwit.subject import check_subject


class Core(NamedTuple):
    """A core's seconds, as psutil reports them on Linux."""

    user: float
    idle: float
    iowait: float = 0
    guest: float = 0


def test_a_round_holds_cpu_memory_disk_network_and_load_of_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = Telemetry("my host/é")
    assert not any("/cpu" in draft.subject for draft in telemetry.measure()), "there is no time yet to tell of"
    later_s = time.monotonic() + 1
    monkeypatch.setattr("time.monotonic", lambda: later_s)
    drafts = telemetry.measure()
    names = {draft.subject.removeprefix("/host/my-host/") for draft in drafts}
    assert {"cpu", "cpu/0", "memory", "disk", "load"} <= names
    assert any(name.startswith("network/") for name in names)
    for draft in drafts:
        check_subject(draft.subject)
        fields = json.loads(draft.content)
        assert fields and all(isinstance(value, int | float) for value in fields.values())


def test_rounds_that_come_together_tell_the_load_that_was_measured_last(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = iter([[Core(0, 10)], [Core(4, 16)], [Core(5.2, 16.8)]])
    now_s = [100.0]
    monkeypatch.setattr("psutil.cpu_times", lambda percpu: next(measured))
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    telemetry, readings = Telemetry("h"), []
    for at in (101.0, 101.001, 101.2):
        now_s[0] = at
        readings += [
            json.loads(draft.content)["percent"] for draft in telemetry.measure() if draft.subject == "/host/h/cpu"
        ]
    assert readings == [40.0, 40.0, 60.0]


def test_whichever_thread_measures_tells_the_same_load(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    busy = Core(user=0, idle=0, guest=0)
    monkeypatch.setattr("psutil.cpu_times", lambda percpu: [busy, busy])
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    telemetry, readings = Telemetry("h"), []
    for second in range(1, 5):
        now_s[0], busy = 100.0 + second, Core(second * 0.75, second * 0.2, second * 0.05, second * 0.25)
        with ThreadPoolExecutor(1) as pool:  # a thread that has never measured
            drafts = pool.submit(telemetry.measure).result()
        readings += [json.loads(draft.content)["percent"] for draft in drafts if draft.subject == "/host/h/cpu"]
    assert readings == [75.0] * 4


@pytest.mark.parametrize(
    ("text", "segment"), [("a.b-c_1", "a.b-c_1"), ("a b/c", "a-b-c"), ("*", "unnamed"), ("", "unnamed")]
)
def test_any_text_becomes_one_segment(text: str, segment: str) -> None:
    assert make_segment(text) == segment
    assert len(make_segment("x" * 500)) <= 64


async def test_rounds_go_on_after_one_failed_until_stopped() -> None:
    rounds: list[Sequence[Draft]] = []
    enough = asyncio.Event()

    def publish_many(drafts: Sequence[Draft]) -> None:
        rounds.append(drafts)
        if len(rounds) == 1:
            raise RuntimeError("an odd sensor")
        enough.set()

    demo = Demo(publish_many, interval_ms=1)
    demo.start()
    await asyncio.wait_for(enough.wait(), 5)
    await demo.stop()
    count = len(rounds)
    await demo.stop()
    assert len(rounds) == count
