"""The demonstration publishes what this host has, under legal subjects, and survives odd sensors."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from godwit.demo import Demo, Telemetry, make_segment
from godwit.engine import Draft
from godwit.subject import check_subject


def test_a_round_holds_cpu_memory_disk_network_and_load_of_this_host() -> None:
    drafts = Telemetry("my host/é").measure()
    names = {draft.subject.removeprefix("/host/my-host/") for draft in drafts}
    assert {"cpu", "cpu/0", "memory", "disk", "load"} <= names
    assert any(name.startswith("network/") for name in names)
    for draft in drafts:
        check_subject(draft.subject)
        fields = json.loads(draft.content)
        assert fields and all(isinstance(value, int | float) for value in fields.values())


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
