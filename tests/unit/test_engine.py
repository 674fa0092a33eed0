"""The engine's interface: the same tests for the fake engine and, if it is built, the compiled one, so that they agree."""

import asyncio
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from godwit.codes import Code
from godwit.config import build_config
from godwit.engine import AuthorizeReport, Draft, Engine, Start, make_ask, make_authorize, make_settings, open_engine
from godwit.errors import ListenFailed, NodeFailed
from godwit.model import Kind, Position
from godwit.monitoring.metric_specs import ENGINE_NAMES, NODE, PROTOCOL, SHARD, MetricSpec
from godwit.testing import FREE_PORTS
from godwit.testing.fake_engine import open_fake_engine

IS_BUILT = importlib.util.find_spec("godwit._engine") is not None and hasattr(
    importlib.import_module("godwit._engine"), "Engine"
)
ENGINES = {"fake": open_fake_engine, **({"compiled": open_engine} if IS_BUILT else {})}
START = Start(run=1, seed=2, epoch=7, anonymous=[("/**", "both", "allow")], asks=False)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    opened = ENGINES[request.param](build_config(FREE_PORTS, {}, {}), START)
    yield opened
    opened.stop()


def test_it_listens_where_it_was_told(engine: Engine) -> None:
    listening = engine.start()
    assert listening.client.host == "127.0.0.1" and listening.client.port > 0
    again = ENGINES["fake"](build_config({"client": {"address": str(listening.client)}}, {}, {}), START)
    with pytest.raises(ListenFailed, match="cannot listen for client"):
        again.start()


def test_a_batch_is_published_in_order_and_each_has_its_outcome(engine: Engine) -> None:
    engine.start()
    drafts = [
        Draft("/a", b"1"),
        Draft("/a", b"2", Kind.TEXT),
        Draft("a", b"3"),
        Draft("/b", b"\x00", Kind.BYTES, False),
    ]
    assert engine.publish_many(drafts) == [Position(7, 1), Position(7, 2), int(Code.SUBJECT_INVALID), Position(7, 1)]
    assert engine.publish_many([]) == []


def test_subjects_are_paged_in_name_order_and_filtered(engine: Engine) -> None:
    engine.start()
    engine.publish_many([Draft(f"/s/{number}", b"0") for number in range(5)] + [Draft("/t", b"0")])
    assert [row["subject"] for row in engine.subjects("", 2, None)] == ["/s/0", "/s/1"]
    assert [row["subject"] for row in engine.subjects("/s/1", 3, None)] == ["/s/2", "/s/3", "/s/4"]
    assert [row["subject"] for row in engine.subjects("", 9, "/t/**")] == ["/t"]
    assert engine.subjects("/t", 9, None) == []
    assert engine.subjects("", 1, "/s/3")[0]["at"] == "7.1"
    assert engine.connections(0, 10, None, False) == ([], None) and engine.connection(1) is None


async def test_a_drain_ends_with_its_report(engine: Engine) -> None:
    engine.start()
    drained = asyncio.Event()

    def take() -> None:
        if any(report[0] == "drained" for report in engine.reports()):
            drained.set()

    asyncio.get_running_loop().add_reader(engine.report_fd(), take)
    engine.drain(100, 0)
    await asyncio.wait_for(drained.wait(), 5)
    asyncio.get_running_loop().remove_reader(engine.report_fd())


def test_statistics_are_numbers_for_the_node_and_each_shard(engine: Engine) -> None:
    engine.start()
    engine.publish_many([Draft("/a", b"1")])
    stats = engine.stats()
    assert (stats["subjects"], stats["accepted"]) == (1, 1) and len(stats["shards"]) >= 1
    assert list_numbers(stats) <= list_names(NODE)
    for shard in stats["shards"]:
        assert list_numbers(shard) <= list_names(SHARD) | list_names(PROTOCOL) | {"accepted", "disconnected"}
        assert all(list_numbers(protocol) <= list_names(PROTOCOL) for protocol in shard["protocols"].values())
    json.dumps(stats)


def test_settings_name_every_limit_and_only_what_a_pattern_sets() -> None:
    config = build_config({"patterns": {"/a": {"batch_ms": 5}}}, {}, {})
    settings = make_settings(config, replace(START, anonymous=None, asks=True))
    assert settings["anonymous"] is None and settings["asks_on_connect"] is True
    assert settings["limits"] == dict(config.limits)
    assert settings["patterns"] == [{"pattern": "/a", "batch_ms": 5}]
    json.dumps(settings)


def test_questions_become_values_that_do_not_show_a_token() -> None:
    report = make_authorize(("authorize", 1, "s3cret", None, "127.0.0.1:1", False))
    assert report == AuthorizeReport(1, "s3cret", None, "127.0.0.1:1", False) and "s3cret" not in repr(report)
    assert make_ask(("ask", 1, "ann", "publish", "/a")).selector == "/a"


@pytest.mark.skipif(not IS_BUILT, reason="the compiled engine is not built")
def test_settings_the_engine_does_not_take_are_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("godwit.engine.make_settings", lambda *_, **__: {"shards": "many"})
    with pytest.raises(NodeFailed, match="does not accept its settings"):
        open_engine(build_config({}, {}, {}), START)


def list_numbers(counters: dict[str, Any]) -> set[str]:
    return {name for name, value in counters.items() if isinstance(value, int | float) and not isinstance(value, bool)}


def list_names(figures: tuple[MetricSpec, ...]) -> set[str]:
    """What the engine calls them."""
    return {ENGINE_NAMES.get(figure.name, figure.name) for figure in figures}
