"""Operations in the console, and its automatic behaviour: a node that is lost and returns, and a hidden tab."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Request, WebSocket, expect
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from godwit import testing
from godwit.config import build_config
from godwit.engine import Draft
from godwit.server import Node
from tests.console.test_console import TOKEN, WAIT_MS, open_page

HIDE = """isHidden => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture(autouse=True)
def patience() -> None:
    expect.set_options(timeout=WAIT_MS)


def publish(node: testing.RunningNode, subject: str, *contents: Any) -> None:
    node.node.engine.publish_many([Draft(subject, json.dumps(content).encode()) for content in contents])


async def give_token(page: Page) -> None:
    dialog = page.get_by_role("dialog", name="Admin token")
    await dialog.get_by_label("Token", exact=True).fill(TOKEN)
    await dialog.get_by_role("button", name="Keep").click()


async def test_a_node_that_comes_back_is_shown_again_without_a_reload(page: Page) -> None:
    async with testing.node({"node": {"name": "first"}}) as node:
        publish(node, "/a", 1)
        await open_page(page, node, "live?pattern=/a")
        await expect(page.locator("#messages tbody tr")).to_have_count(1)
        await page.evaluate("window.isSamePage = true")
        places = {name: {"address": str(getattr(node, name))} for name in ("client", "admin")}
    await expect(page.locator("#condition")).to_have_text("unreachable")
    await expect(page.locator("body")).to_have_class(re.compile("stale"))
    await expect(page.get_by_role("alert").first).to_contain_text("does not answer")
    async with testing.node({**places, "node": {"name": "second"}}) as node:
        await expect(page.locator("#condition")).to_have_text("ready")
        await expect(page.locator("#node-name")).to_have_text("second")
        await expect(page.locator("#banner")).to_be_empty()
        await expect(page.locator("body")).not_to_have_class(re.compile("stale"))
        await expect(page.locator("#messages tbody")).to_contain_text(re.compile("gap", re.IGNORECASE))
        publish(node, "/a", "of the new run")
        await expect(page.locator("#messages tbody")).to_contain_text("of the new run")
        await page.get_by_role("link", name="Overview").click()
        await expect(page.locator(".tile", has_text="Connections").locator("dd").first).to_have_text(re.compile(r"^\d"))
    assert await page.evaluate("window.isSamePage")


async def test_a_journal_whose_disk_fails_is_said_above_every_page_until_it_takes_rows_again(page: Page) -> None:
    async with testing.node() as node:
        await open_page(page, node, "overview")
        await expect(page.locator("#condition")).to_have_text("ready")
        await expect(page.locator("#banner")).to_be_empty()
        node.node.health.journal = "messages: No space left on device (os error 28)"
        await expect(page.get_by_role("alert").first).to_contain_text("The journal's disk is failing")
        await expect(page.get_by_role("alert").first).to_contain_text("No space left on device")
        await page.get_by_role("link", name="Subjects").first.click()
        await expect(page.get_by_role("alert").first).to_contain_text("failing")
        await expect(page.locator("#condition")).to_have_text("ready")
        node.node.health.journal = ""
        await expect(page.locator("#banner")).to_be_empty()


async def test_a_hidden_tab_asks_nothing_and_goes_on_where_it_stood(page: Page) -> None:
    """The clock is the test's own: a minute of silence takes no time."""
    asked: list[Request] = []
    sockets: list[WebSocket] = []
    sent: list[str] = []

    def watch(socket: WebSocket) -> None:
        sockets.append(socket)
        socket.on("framesent", lambda payload: sent.append(str(payload)))

    page.on("request", lambda request: asked.append(request))
    page.on("websocket", watch)
    await page.clock.install()
    async with testing.node() as node:
        publish(node, "/a", 1, 2)
        await open_page(page, node, "live?pattern=/**")
        rows = page.locator("#messages tbody tr")
        publish(node, "/a", "seen")
        await expect(rows.filter(has_text="seen")).to_have_count(1)
        await page.evaluate(HIDE, True)
        live = sockets[-1]
        if not live.is_closed():
            await live.wait_for_event("close")
        await page.clock.run_for(2_000)  # whatever was under way has its answer
        before = len(asked), len(sockets)
        await page.clock.run_for(60_000)
        publish(node, "/a", *(f"unseen {number}" for number in range(5)))
        await page.clock.run_for(60_000)
        assert (len(asked), len(sockets)) == before, [request.url for request in asked[before[0] :]]
        async with page.expect_websocket():
            await page.evaluate(HIDE, False)
        await expect(rows.filter(has_text="unseen")).to_have_count(5)
        await expect(rows.filter(has_text="seen")).to_have_count(6)  # nothing twice
        assert len(asked) > before[0] and '"since"' in sent[-1]


async def test_a_subject_is_purged_with_the_token_and_only_when_meant(page: Page) -> None:
    async with testing.node({"admin": {"token": TOKEN}}) as node:
        publish(node, "/a/b", *({"x": number} for number in range(7)))
        await open_page(page, node, "subject?name=/a/b")
        await expect(page.locator("#now")).to_contain_text("7 messages")
        await page.get_by_role("button", name="Purge").click()
        await page.get_by_role("button", name="Cancel").click()
        await page.get_by_role("button", name="Purge").click()
        await page.get_by_role("dialog").get_by_role("button", name="Purge").click()
        await give_token(page)
        await expect(page.locator("p.outcome")).to_have_text("7 messages deleted.")
        await expect(page.locator("#now")).to_contain_text("1 message")
        await expect(page.locator("#snapshot pre")).to_have_text("–")
        publish(node, "/a/b", {"x": "after"})
        await expect(page.locator("#snapshot pre")).to_contain_text("after")


async def test_the_configuration_is_read_again_and_what_changed_is_named(page: Page, tmp_path: Path) -> None:
    admin = {**testing.FREE_PORTS["admin"], "token": TOKEN}
    table: dict[str, Any] = {**testing.FREE_PORTS, "admin": admin, "limits": {"log_messages_max": 5}}
    found = {"table": table}
    node = Node(build_config(table, {}, {}), read_config=lambda: build_config(found["table"], {}, {}))
    listeners = await node.start()
    try:
        running = testing.RunningNode(node, listeners.client, listeners.admin, listeners.mqtt)
        await open_page(page, running, "configuration")
        found["table"] = {**table, "logging": {"level": "warning"}, "node": {"shards": 2}}
        await page.get_by_role("button", name="Reload").click()
        await page.get_by_role("dialog").get_by_role("button", name="Reload").click()
        await give_token(page)
        outcome = page.locator("p.outcome")
        await expect(outcome).to_contain_text("Changed: logging.level.")
        await expect(outcome).to_contain_text("node.shards")
        await expect(page.locator("tr", has_text="level").filter(has_text="warning").first).to_be_visible()
        found["table"] = {**table, "logging": {"level": "loud"}}
        await page.get_by_role("button", name="Reload").click()
        await page.get_by_role("dialog").get_by_role("button", name="Reload").click()
        await expect(page.locator(".fault").first).to_contain_text("logging.level")
    finally:
        await node.stop()


async def test_refusals_of_every_protocol_are_shown(page: Page) -> None:
    async with testing.node() as node:
        url = f"http://{node.client}/v1/messages?subject=no/slash"
        answer = await page.request.post(url, data="1", headers={"Content-Type": "application/json"})
        assert answer.status == 400
        await open_page(page, node, "limits")
        await expect(page.locator("#refusals tbody tr").first).to_contain_text("4101 SubjectInvalid")


async def test_a_slow_consumer_is_found_and_told_as_at_most_so_far_behind(page: Page) -> None:
    """Counted are all messages the node accepted since the one it stands at, also those it did not ask for."""
    async with (
        testing.node() as node,
        connect(node.url, subprotocols=[Subprotocol("godwit.v1.json")], max_queue=1) as slow,
    ):
        await slow.send(json.dumps([{"id": 1, "connect": {"client": "slow/1"}}, {"id": 2, "subscribe": "/flood"}]))
        await slow.recv()
        for _ in range(20):
            publish(node, "/flood", *(["x" * 60_000] * 20))
        publish(node, "/other", *range(100))
        await open_page(page, node, "connections?behind=true")
        await expect(page.locator("#connections tbody tr")).to_contain_text(
            re.compile("1 of 1 behind by at most [\\d,]+ messages")
        )
        await page.locator("#connections").get_by_role("link").click()
        await expect(page.locator("#stands tbody tr")).to_contain_text(re.compile("catching up|in the window"))
        slow.transport.abort()  # a close would wait for what it does not read
