"""The node's order of steps, with a fake engine: start, readiness, questions, drain, stop."""

import asyncio
import json
import socket
import threading
from pathlib import Path

import aiohttp
import pytest
import structlog

from godwit import testing
from godwit.access import Authorizer, ConnectQuestion, Grant, Refusal
from godwit.config import Config, build_config
from godwit.errors import AuthorizerFailed, ConfigInvalid, ListenFailed
from godwit.monitoring.health import Condition
from godwit.server import Node
from godwit.testing.fake_engine import FakeEngine, open_fake_engine

QUESTION = ("authorize", 7, "correct-horse-battery-staple", "test/1", "127.0.0.1:9", False)


def fake(node: Node) -> FakeEngine:
    engine = node.engine.compiled
    assert isinstance(engine, FakeEngine)
    return engine


async def test_a_started_node_is_ready_and_says_where_it_listens() -> None:
    async with testing.node(open_engine=open_fake_engine) as running:
        assert running.node.health.is_ready
        assert running.client.port > 0 and running.admin.port > 0
        async with aiohttp.ClientSession() as http, http.get(f"{running.admin_url}/health/ready") as answer:
            assert (answer.status, await answer.json()) == (200, {"condition": "ready"})


async def test_settings_cross_to_the_engine_as_one_value() -> None:
    settings = {"node": {"shards": 2}, "limits": {"log_messages_max": 7}, "patterns": {"/a/**": {"snapshot": False}}}
    async with testing.node(settings, open_engine=open_fake_engine) as running:
        crossed = fake(running.node).settings
        assert crossed["shards"] == 2
        assert crossed["limits"]["log_messages_max"] == 7
        assert crossed["patterns"][-1:] == [{"pattern": "/a/**", "snapshot": False}]
        assert crossed["reports_sessions"] is False
        assert crossed["anonymous"][0] == {"pattern": "/**", "actions": "both", "verdict": "allow"}
        assert crossed["asks_on_connect"] is False


async def test_a_token_is_judged_and_the_answer_goes_back_as_an_order() -> None:
    access = {"access": {"mode": "basic", "publish_tokens": ["correct-horse-battery-staple"]}}
    async with testing.node(access, open_engine=open_fake_engine) as running:
        engine = fake(running.node)
        assert engine.settings["anonymous"] == [{"pattern": "/**", "actions": "subscribe", "verdict": "allow"}]
        engine.tell(QUESTION)
        await asyncio.wait_for(engine.was_ordered.wait(), 5)
        [order] = engine.orders
        assert order[:2] == ("grant", 7) and order[3][0] == ("/**", "both", "allow")
        assert order[3][1:] == [("/$node/**", "subscribe", "allow")], "who may do everything may look"


async def test_a_draining_node_is_alive_and_not_ready_then_stops() -> None:
    async with testing.node({"drain": {"grace_ms": 1, "spread_ms": 2}}, open_engine=open_fake_engine) as running:
        await running.node.drain()
        assert fake(running.node).drains == [(1, 2)]
        async with aiohttp.ClientSession() as http:
            async with http.get(f"{running.admin_url}/health/ready") as answer:
                assert (answer.status, await answer.json()) == (503, {"condition": "draining"})
            async with http.get(f"{running.admin_url}/health/live") as answer:
                assert answer.status == 200
        await running.node.stop()
        assert fake(running.node).is_stopped
        await running.node.stop()


async def test_a_failed_shard_makes_the_node_neither_alive_nor_ready() -> None:
    async with testing.node(open_engine=open_fake_engine) as running:
        fake(running.node).tell(("shard_failed", 1, "gave up"))
        await asyncio.wait_for(fake(running.node).was_read.wait(), 5)
        assert not running.node.health.is_alive
        running.node.health.change(Condition.DRAINING)
        assert not running.node.health.is_alive and running.node.health.reason == "shard 1 gave up"


@pytest.mark.parametrize("listener", ["client", "admin"])
async def test_a_taken_port_is_refused_and_what_had_begun_is_stopped(listener: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        table = {name: dict(address) for name, address in testing.FREE_PORTS.items()}
        table[listener] = {"address": f"127.0.0.1:{taken.getsockname()[1]}"}
        node = Node(build_config(table, {}, {}), open_engine=open_fake_engine)
        with pytest.raises(ListenFailed, match=f"cannot listen for {listener} on 127.0.0.1"):
            await node.start()
        assert node.health.condition is Condition.STOPPED


def test_what_cannot_be_right_is_refused_before_anything_opens(tmp_path: Path) -> None:
    missing = build_config({"access": {"mode": "custom", "authorizer": "no_such_module:X"}}, {}, {})
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "access.authorizer"):
        Node(missing, open_engine=open_fake_engine)
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "node.data_directory"):
        Node(build_config({"node": {"data_directory": str(in_the_way)}}, {}, {}), open_engine=open_fake_engine)


async def test_the_statistics_hold_the_node_and_the_engine() -> None:
    async with testing.node({"node": {"name": "n1"}}, open_engine=open_fake_engine) as running:
        async with aiohttp.ClientSession() as http, http.get(f"{running.admin_url}/v1/stats") as answer:
            reply = json.loads(await answer.text())
        assert reply["node"] == "n1" and reply["condition"] == "ready" and reply["engine"]["subjects"] == 0


async def test_a_storm_of_refusals_is_one_line_and_sessions_are_logged_only_where_asked() -> None:
    for is_asked in (False, True):
        settings = {"logging": {"sessions": is_asked}}
        with structlog.testing.capture_logs() as logs:
            async with testing.node(settings, open_engine=open_fake_engine) as running:
                engine = fake(running.node)
                engine.tell(*[("refused", f"127.0.0.1:{n}", 4201, "full", 0, "") for n in range(1_000)])
                engine.tell(
                    ("connected", 7, "ann", "test/1", "127.0.0.1:9", "json", "", "jwt:i"), ("disconnected", 7, 1000, 5)
                )
                await asyncio.wait_for(engine.was_read.wait(), 5)
        [refused] = [event for event in logs if event["event"] == "connections_refused"]
        assert (refused["count"], refused["code"], refused["last"]) == (1_000, 4201, "127.0.0.1:999")
        sessions = [event for event in logs if event["event"].startswith("session_")]
        assert [event["event"] for event in sessions] == ["session_connected", "session_disconnected"] * is_asked
        assert not is_asked or (sessions[0]["identity"], sessions[1]["duration_ms"]) == ("ann", 5)


class Troubled(Authorizer):
    """Cannot start, or cannot stop."""

    def __init__(self, verb: str) -> None:
        self._verb = verb

    async def connect(self, question: ConnectQuestion) -> Grant | Refusal:
        return Refusal()

    async def start(self) -> None:
        if self._verb == "start":
            raise OSError("no database")

    async def stop(self) -> None:
        raise OSError("no database")


CANNOT_START, CANNOT_STOP = Troubled("start"), Troubled("stop")


async def test_an_authorizer_that_cannot_start_or_stop_is_said_and_leaves_nothing_open() -> None:
    access = {"mode": "custom", "authorizer": f"{__name__}:CANNOT_START"}
    with pytest.raises(AuthorizerFailed, match="did not start: OSError: no database"):
        async with testing.node({"access": access}, open_engine=open_fake_engine):
            pass
    access["authorizer"] = f"{__name__}:CANNOT_STOP"
    async with testing.node({"access": access}, open_engine=open_fake_engine) as running:
        await running.node.stop()
        assert fake(running.node).is_stopped and running.node.health.condition is Condition.STOPPED


async def test_a_delayed_drain_is_not_ready_and_refuses_nobody_yet() -> None:
    async with testing.node({"drain": {"delay_ms": 60_000}}, open_engine=open_fake_engine) as running:
        draining = asyncio.create_task(running.node.drain())
        await asyncio.sleep(0)
        assert running.node.health.condition is Condition.DRAINING and fake(running.node).drains == []
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
    async with testing.node({"drain": {"delay_ms": 1}}, open_engine=open_fake_engine) as running:
        await running.node.drain()
        assert len(fake(running.node).drains) == 1


async def test_a_reload_that_is_refused_has_not_changed_the_engine() -> None:
    loopback = {"address": "127.0.0.1:0"}
    ports = {"client": loopback, "mqtt": loopback}
    admin = {**loopback, "token": "0123456789abcdef"}
    node = Node(build_config({**ports, "admin": admin}, {}, {}), open_engine=open_fake_engine)
    await node.start()
    try:
        before = fake(node).settings["limits"]
        limits = {"subscriptions_per_connection_max": before["subscriptions_per_connection_max"] + 1}
        wrong = build_config({**ports, "admin": {**loopback, "token_for_reads": True}, "limits": limits}, {}, {})
        with pytest.raises(ConfigInvalid, match="token_for_reads"):
            await node.reload(wrong)
        assert fake(node).settings["limits"] == before
    finally:
        await node.stop()


async def test_reloads_are_applied_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second is asked for while the first is on its way to the engine: it reads its sources after that."""
    ports = {name: {"address": "127.0.0.1:0"} for name in ("client", "mqtt", "admin")}
    configs = [build_config({**ports, "limits": {"subjects_max": count}}, {}, {}) for count in (100, 200, 300)]
    sources, events = iter(configs[1:]), list[str]()

    def read() -> Config:
        events.append("read")
        return next(sources)

    def note(config: Config) -> None:
        events.append(f"reloaded {config.limits['subjects_max']}")

    node = Node(configs[0], open_engine=open_fake_engine, read_config=read, on_reload=note)
    listeners = await node.start()
    try:
        is_asked, may_go_on = threading.Event(), threading.Event()
        configure = fake(node).configure

        def configure_slowly(settings: str) -> None:
            is_asked.set()
            assert may_go_on.wait(60)
            configure(settings)

        monkeypatch.setattr(fake(node), "configure", configure_slowly)
        first = asyncio.create_task(node.reload())
        await asyncio.to_thread(is_asked.wait, 60)
        second = asyncio.create_task(node.reload())
        await asyncio.sleep(0)  # it begins
        may_go_on.set()
        await asyncio.gather(first, second)
        assert events == ["read", "reloaded 200", "read", "reloaded 300"]
        async with aiohttp.ClientSession() as http, http.get(f"http://{listeners.admin}/metrics") as answer:
            assert 'godwit_limit{limit="subjects_max"} 300.0' in await answer.text()
    finally:
        await node.stop()
