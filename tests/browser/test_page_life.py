"""Pages in the background: a browser keeps them for the back button, or freezes them. With the DevTools protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from godwit import testing
from godwit.client import Client
from tests.browser.conftest import Serve
from tests.browser.test_javascript_client import publish_numbers
from tests.console.conftest import ARGUMENTS

DEADLINE_S = 90
TRANSPORTS = ("websocket", "sse", "poll")
BLANK = '<!doctype html><script type="module">window.godwit = await import("/godwit-client/src/browser.js");</script>'
BEGIN = """async ([url, transport]) => {
  window.seen = [];
  window.life = [];
  for (const name of ["freeze", "resume"]) document.addEventListener(name, () => life.push(name));
  window.addEventListener("pageshow", ({ persisted }) => life.push(persisted ? "restored" : "loaded"));
  const positions = new godwit.PositionStorage("life");
  window.client = new godwit.Client(url, { transport, positions, settings: { positionsSaveMs: 3_600_000 } });
  window.subscription = client.subscribe("/life", { snapshot: false }, (message) => void seen.push(message.json()));
  await subscription.joined();
}"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def keeping(chromium: str) -> AsyncIterator[Browser]:
    """A browser that keeps pages for its back button, which Playwright asks it not to."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=chromium, args=list(ARGUMENTS), ignore_default_args=["--disable-back-forward-cache"]
        )
        yield started
        await started.close()


async def begin(page: Page, address: str, url: str, transport: str) -> None:
    await page.goto(address)
    await page.wait_for_function("window.godwit !== undefined")
    await page.evaluate(BEGIN, [url, transport])


async def has_seen(page: Page, upto: int) -> None:
    await page.wait_for_function("(upto) => window.seen?.at(-1) === upto - 1", arg=upto)
    assert await page.evaluate("[seen, subscription.counts.missing, subscription.counts.gaps]") == [
        [*range(upto)],
        0,
        0,
    ]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.asyncio(loop_scope="session")
async def test_a_page_that_the_back_button_brings_again_goes_on(keeping: Browser, serve: Serve, transport: str) -> None:
    address, other = await serve(BLANK), await serve("<!doctype html>elsewhere")
    async with (
        testing.node() as node,
        Client(node.url) as client,
        asyncio.timeout(DEADLINE_S),
        await keeping.new_context() as context,
    ):
        page = await context.new_page()
        await begin(page, address, node.url, transport)
        for visit in range(3):
            await publish_numbers(client, "/life", 10 * visit, 5)
            await has_seen(page, 10 * visit + 5)
            await page.goto(other)
            await publish_numbers(client, "/life", 10 * visit + 5, 5)
            await page.go_back(wait_until="commit")
            await has_seen(page, 10 * visit + 10)
        assert (await page.evaluate("life")).count("restored") == 3
        await page.evaluate("client.publish('/life', 30)")
        await has_seen(page, 31)


async def signal_renderers(browser: Browser, number: int) -> None:
    """To the processes of its pages."""
    session = await browser.new_browser_cdp_session()
    found = (await session.send("SystemInfo.getProcessInfo"))["processInfo"]
    renderers = [int(each["id"]) for each in found if each["type"] == "renderer"]
    assert renderers
    for pid in renderers:
        os.kill(pid, number)
    await session.detach()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.asyncio(loop_scope="session")
async def test_a_page_whose_process_was_stopped_goes_on(keeping: Browser, serve: Serve, transport: str) -> None:
    address = await serve(BLANK)
    async with (
        testing.node() as node,
        Client(node.url) as client,
        asyncio.timeout(DEADLINE_S),
        await keeping.new_context() as context,
    ):
        page = await context.new_page()
        await begin(page, address, node.url, transport)
        for stop in range(3):
            await publish_numbers(client, "/life", 20 * stop, 5)
            await has_seen(page, 20 * stop + 5)
            await signal_renderers(keeping, signal.SIGSTOP)
            try:
                await publish_numbers(client, "/life", 20 * stop + 5, 15)
            finally:
                await signal_renderers(keeping, signal.SIGCONT)
            await has_seen(page, 20 * stop + 20)
        await page.evaluate("client.close()")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.asyncio(loop_scope="session")
async def test_a_page_whose_script_stands_still_goes_on(keeping: Browser, serve: Serve, transport: str) -> None:
    """As in a frozen page, timers and events wait while the network goes on. A browser without a screen takes every page for
    visible, and freezes none, so the debugger stops the script."""
    address = await serve(BLANK)
    async with (
        testing.node() as node,
        Client(node.url) as client,
        asyncio.timeout(DEADLINE_S),
        await keeping.new_context() as context,
    ):
        page = await context.new_page()
        await begin(page, address, node.url, transport)
        session = await context.new_cdp_session(page)
        await session.send("Debugger.enable")
        for stop in range(3):
            await publish_numbers(client, "/life", 20 * stop, 5)
            await has_seen(page, 20 * stop + 5)
            stands = asyncio.get_running_loop().create_future()
            session.once("Debugger.paused", lambda _, stands=stands: stands.set_result(None))
            await session.send("Debugger.pause")
            await publish_numbers(client, "/life", 20 * stop + 5, 15)
            await stands
            await session.send("Debugger.resume")
            await has_seen(page, 20 * stop + 20)
        await page.evaluate("client.publish('/life', 60)")
        await has_seen(page, 61)
        await page.evaluate("client.close()")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_page_that_is_told_it_will_be_frozen_saves_its_positions(keeping: Browser, serve: Serve) -> None:
    """A hidden page may never run again. A browser without a screen freezes none, so the event is the test's own."""
    address = await serve(BLANK)
    async with (
        testing.node() as node,
        Client(node.url) as client,
        asyncio.timeout(DEADLINE_S),
        await keeping.new_context() as context,
    ):
        page = await context.new_page()
        await begin(page, address, node.url, "websocket")
        await publish_numbers(client, "/life", 0, 7)
        await has_seen(page, 7)
        await page.evaluate("document.dispatchEvent(new Event('freeze'))")
        entries: list[str] = await page.evaluate(
            "Object.entries(localStorage).filter(([key]) => key.startsWith('godwit:life:')).map(([, entry]) => entry)"
        )
        assert [json.loads(entry)["resumePoint"]["after"]["/life"].rpartition(".")[2] for entry in entries] == ["7"]
