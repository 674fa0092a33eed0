"""A real node's metrics: exact, in every documented form, published to permitted subscribers, and kept over a restart."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema_rs
import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from godwit import testing
from godwit.client import Client
from godwit.monitoring.schema import list_metrics
from godwit.monitoring.windows import WINDOWS
from tests.authority import Authority
from tests.raw_client import RawClient, raw_client

DEADLINE_S = 30
FOLDER = Path("monitoring")
RULES, DASHBOARD = FOLDER / "prometheus" / "alerts.yml", FOLDER / "grafana" / "godwit.json"
TOKEN = "correct-horse-battery-staple"
METRIC = re.compile(r"\b(?:godwit|process)_[a-z_]+\b")
NO_METRICS = {"godwit_condition"}
"""A label that is called as its metric."""


async def get(node: testing.RunningNode, path: str, **headers: str) -> str:
    async with aiohttp.ClientSession() as http, http.get(node.admin_url + path, headers=headers) as answer:
        assert answer.status == 200
        return await answer.text()


async def get_stats(node: testing.RunningNode, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await get(node, "/v1/stats" + query))
    return found


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[testing.RunningNode]:
    """A node on which something of everything has happened."""
    chain, key = Authority(tmp_path).issue("localhost")
    settings = {
        "tls": {"certificate_files": [chain], "key_files": [key]},
        "client": {"tls_address": "127.0.0.1:0"},
        "monitoring": {"push": True},
        "node": {"shards": 2, "name": "n1", "data_directory": str(tmp_path / "data")},
        "limits": {"log_messages_max": 2, "journal_reads_max": 0},
    }
    async with testing.node(settings) as running:
        await live(running)
        yield running


async def live(node: testing.RunningNode) -> None:
    async with (
        Client(node.url) as client,
        raw_client(f"ws://{node.client}") as raw,
        raw_client(f"ws://{node.client}") as gone,
    ):
        messages = aiter(client.subscribe("/a", snapshot=False))
        positions = [(await client.publish("/a", number)).position for number in range(5)]
        async with asyncio.timeout(DEADLINE_S):
            for _ in positions:
                await anext(messages)
        assert (await raw.ask({"id": 1, "publish": "/$node/n1/now", "content": 1}))["error"] == 4101
        assert (await raw.ask({"id": 2, "subscribe": "/a", "after": str(positions[3])}))["outcome"] == "recovered"
        assert (await next_message(raw))["at"] == str(positions[4])
        assert (await raw.ask({"id": 3, "subscribe": "/a", "after": str(positions[0])}))["outcome"] == "resync"
        assert (await next_message(raw))["snapshot"]
        await gone.ask({"id": 1, "ping": True})
    reader, writer = await asyncio.open_connection(node.client.host, node.client.port)
    writer.write(b"no request at all\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 400")
    writer.close()


async def next_message(client: RawClient) -> dict[str, Any]:
    """What comes is counted once it was sent, which may be after the answer."""
    async with asyncio.timeout(DEADLINE_S):
        while (received := await client.receive()) is not None:
            if "message" in received:
                return received
    raise AssertionError("the connection ended")


async def read_metrics(node: testing.RunningNode) -> dict[str, float]:
    """Every family's samples, summed over their labels."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(await get(node, "/metrics")):
        assert family.documentation and family.type != "unknown", family.name
        for sample in family.samples:
            assert len(sample.labels) <= 2
            found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


async def wait_for(node: testing.RunningNode, name: str, value: float) -> dict[str, float]:
    async with asyncio.timeout(DEADLINE_S):
        while (metrics := await read_metrics(node)).get(name) != value:
            pass
    return metrics


async def test_every_metric_that_is_shown_is_in_the_reference(node: testing.RunningNode) -> None:
    received = {name for name, *_ in list_metrics()}
    shown = {
        sample.name
        for family in text_string_to_metric_families(await get(node, "/metrics"))
        for sample in family.samples
        if sample.name.startswith("godwit_")
    }
    assert len(shown) > 40
    assert sorted(shown - received) == []


async def test_metrics_count_what_happened(node: testing.RunningNode) -> None:
    metrics = await wait_for(node, "godwit_connections", 0)
    assert metrics["godwit_messages_in_total"] == 5
    assert metrics["godwit_messages_out_total"] == 5 + 1 + 1, "live, recovered, and the snapshot after the gap"
    assert metrics["godwit_publishes_refused_total"] == 1 == metrics["godwit_publishes_refused_by_code_total"]
    assert (metrics["godwit_recovered_total"], metrics["godwit_resynced_total"]) == (1, 1)
    assert metrics["godwit_gaps_total"] == 1 == metrics["godwit_gaps_by_reason_total"]
    assert (
        metrics["godwit_connects_total"]
        == metrics["godwit_disconnects_total"]
        == metrics["godwit_closes_by_code_total"]
    )
    assert metrics["godwit_connections_refused_by_code_total"] == 1
    assert metrics["godwit_subscriptions"] == metrics["godwit_slow_consumers"] == 0
    assert metrics["godwit_shard_cpu_seconds_total"] > 0 and metrics["process_resident_memory_bytes"] > 1e6


async def test_statistics_fit_their_own_schema_with_all_windows(node: testing.RunningNode) -> None:
    schema = json.loads(await get(node, "/v1/stats/schema"))
    jsonschema_rs.meta.validate(schema)
    async with asyncio.timeout(DEADLINE_S):
        while not (stats := await get_stats(node, "?windows=all"))["windows"]["1min"]["node"]:
            pass
    jsonschema_rs.validate(schema, stats)
    assert set(stats["windows"]) == set(WINDOWS) and len(stats["now"]["shards"]) == 2
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(schema, {**stats, "now": {**stats["now"], "node": {"never_heard_of": 1}}})


async def test_figures_are_pushed_to_who_joins_and_each_second(node: testing.RunningNode) -> None:
    async with Client(node.url) as client, asyncio.timeout(DEADLINE_S):
        figures = aiter(client.subscribe("/$node/n1/now"))
        times = [(await anext(figures)).json()["time"] for _ in range(3)]
        assert times == sorted(set(times))
        window = await anext(aiter(client.subscribe("/$node/*/15mo")))
        assert window.subject == "/$node/n1/15mo" and window.json()["seconds"] == 15 * 30 * 86_400
        protocol = await anext(aiter(client.subscribe("/$node/n1/protocols/*/now")))
        assert protocol.json()["connections"] >= 0


async def test_no_leading_wildcard_hears_of_the_node_and_nobody_publishes_there(node: testing.RunningNode) -> None:
    async with raw_client(f"ws://{node.client}") as raw:
        for pattern in ("/**", "/*/n1/now"):
            answer = await raw.ask({"id": 1, "subscribe": pattern, "last": 5})
            assert answer["ok"] == "subscribed"
        for command in ({"publish": "/$node/n1/now"}, {"publish": "/$node"}, {"publish": "/$anything/else"}):
            assert (await raw.ask({"id": 2, **command, "content": 1}))["error"] == 4101
        assert (await raw.ask({"id": 3, "publish": "/end", "content": 1}))["ok"] == "published"
        async with asyncio.timeout(DEADLINE_S):
            while (push := await raw.receive()) is not None and push.get("message") != "/end":
                assert not push.get("message", "").startswith("/$")


async def test_where_publishing_needs_a_token_so_does_looking_at_the_node() -> None:
    access = {"mode": "basic", "publish_tokens": [TOKEN]}
    settings = {"access": access, "monitoring": {"push": True}, "node": {"name": "n1"}}
    async with testing.node(settings) as running, raw_client(f"ws://{running.client}") as raw:
        assert (await raw.ask({"id": 1, "subscribe": "/$node/**"}))["error"] == 4113
        assert (await raw.ask({"id": 2, "connect": {"token": TOKEN}}))["ok"] == "connected"
        assert (await raw.ask({"id": 3, "subscribe": "/$node/**"}))["ok"] == "subscribed"


async def test_windows_outlive_the_node_that_has_a_data_directory(tmp_path: Path) -> None:
    settings = {"node": {"data_directory": str(tmp_path)}}
    async with testing.node(settings) as running, asyncio.timeout(DEADLINE_S):
        while (await get_stats(running, "?windows=15mo"))["windows"]["15mo"]["covered_seconds"] < 1.5:
            pass
    covered_s = json.loads((tmp_path / "statistics").read_bytes().partition(b"\n")[0])["time_s"]
    async with testing.node(settings) as running:
        assert (await get_stats(running, "?windows=15mo"))["windows"]["15mo"]["covered_seconds"] >= 1.5
    assert json.loads((tmp_path / "statistics").read_bytes().partition(b"\n")[0])["time_s"] >= covered_s


def list_rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from group["rules"]


def list_queries() -> Iterator[str]:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        assert panel["title"] and (panel["type"] == "row" or panel["description"])
        yield from (target["expr"] for target in panel.get("targets", ()))


async def test_every_metric_of_the_dashboard_and_the_alerts_is_there(node: testing.RunningNode) -> None:
    metrics = await read_metrics(node)
    queries = [*list_queries(), *(rule["expr"] for rule in list_rules())]
    assert len(queries) > 60
    missing = {name for query in queries for name in METRIC.findall(query)} - metrics.keys()
    assert not missing - NO_METRICS


def test_every_alert_says_what_it_means_and_what_to_do() -> None:
    rules = list(list_rules())
    assert len({rule["alert"] for rule in rules}) == len(rules) > 20
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"].keys() == {"summary", "runbook"} and len(rule["annotations"]["runbook"]) > 40


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed; Debian has it in prometheus")
async def test_promtool_agrees(node: testing.RunningNode) -> None:
    def run(*words: str, text: str = "") -> None:
        ran = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True, check=False, timeout=120)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    run("check", "rules", str(RULES), str(RULES.with_name("pipelines.yml")))
    run("check", "config", "--syntax-only", str(RULES.with_name("prometheus.yml")))
    run("test", "rules", *(str(RULES.with_name(f"{name}_test.yml")) for name in ("alerts", "pipelines")))
    run("check", "metrics", text=await get(node, "/metrics", Accept="text/plain"))
