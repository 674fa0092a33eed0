"""Ten visible and ten hidden tabs of one browser, by events: each visible one receives and publishes, over HTTP/1.1 and behind a proxy
that speaks HTTP/2. A browser has six connections to one host over HTTP/1.1, all its tabs together."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from godwit import testing
from godwit.client import Client
from tests.authority import Authority
from tests.browser.conftest import Serve

BOUND_MS = 5_000
BLANK = '<!doctype html><script type="module">window.godwit = await import("/godwit-client/src/browser.js");</script>'
HIDE = """() => {
  Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
BEGIN = """async ([url, own]) => {
  window.seen = [];
  window.client = new godwit.Client(url, { transport: "sse", settings: { reconnectFirstMs: 100 } });
  client.subscribe("/all", (message) => void seen.push(message.text()));
  client.subscribe(`/own/${own}/**`, (message) => void seen.push(message.text()));
  client.subscribe("/price", { conflateMs: 200 }, (message) => void seen.push(`price ${message.json()}`));
  client.watch("/watched/*", ({ subject, hasSubscribers }) => void seen.push(`${subject} ${hasSubscribers}`));
  await client.connected();
}"""
SEEN = "(value) => seen.includes(value)"


@asynccontextmanager
async def h2_proxy(port: int, folder: Path, root: Path) -> AsyncIterator[str]:
    """Where a browser reaches the node by HTTP/2."""
    node = shutil.which("node")
    assert node is not None
    certificate, key = Authority(folder).issue("127.0.0.1")
    proxy = await asyncio.create_subprocess_exec(
        *(node, str(root / "tests/browser/h2_proxy.js"), str(port), certificate, key),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert proxy.stdout is not None
    try:
        yield f"wss://127.0.0.1:{int(await proxy.stdout.readline())}"
    finally:
        proxy.terminate()
        await proxy.wait()


def bound_ms(tabs: list[Page]) -> int:
    """Ten tabs and fewer have it in 5 s; more take their turns at six connections."""
    return BOUND_MS * max(1, -(-len(tabs) // 10))


async def open_tab(context: Any, address: str) -> Page:
    page: Page = await context.new_page()
    await page.goto(address)
    await page.wait_for_function("window.godwit !== undefined")
    return page


async def receive_and_publish(tabs: list[Page], client: Client, word: str) -> None:
    """Each tab receives what is published, and what it publishes itself, within the bound."""
    await client.publish("/all", word)
    await have_seen(tabs, word)
    publishing = [
        tab.evaluate("([own, word]) => void client.publish(`/own/${own}/x`, word)", [own, f"{word} {own}"])
        for own, tab in enumerate(tabs)
    ]
    await asyncio.gather(*publishing)
    waiting = (
        tab.wait_for_function(SEEN, arg=f"{word} {own}", timeout=bound_ms(tabs), polling=50)
        for own, tab in enumerate(tabs)
    )
    await asyncio.gather(*waiting)


async def have_seen(tabs: list[Page], word: str, times: int = 1) -> None:
    await asyncio.gather(
        *(tab.wait_for_function(SEEN, arg=word, timeout=times * bound_ms(tabs), polling=50) for tab in tabs)
    )


async def conflate_and_watch(visible: list[Page], hidden: list[Page], client: Client) -> None:
    """Each tab gets the last of many prices, not each of them, and hears who listens and who has gone."""
    for price in range(200):
        await client.publish("/price", price)
    for tabs, times in ((visible, 1), (hidden, 4)):
        await have_seen(tabs, "price 199", times)
        for tab in tabs:
            assert await tab.evaluate("seen.filter((word) => word.startsWith('price')).length") < 200
    async with client.subscribe("/watched/x", snapshot=False) as watched:
        await watched.joined()
        await have_seen(visible, "/watched/x true")
        await have_seen(hidden, "/watched/x true", 4)
    await have_seen(visible, "/watched/x false", 2)
    await have_seen(hidden, "/watched/x false", 4)


@pytest.mark.long
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize(("visible_tabs", "hidden_tabs"), [(10, 10), (20, 0)])
async def test_each_visible_tab_receives_and_publishes(
    browser: Browser, serve: Serve, root: Path, tmp_path: Path, protocol: str, visible_tabs: int, hidden_tabs: int
) -> None:
    address = await serve(BLANK)
    async with (
        testing.node() as node,
        Client(node.url) as client,
        asyncio.timeout(240),
        h2_proxy(node.client.port, tmp_path, root) as secure,
        await browser.new_context(ignore_https_errors=True) as context,
    ):
        url = secure if protocol == "HTTP/2" else node.url
        hidden = [await open_tab(context, address) for _ in range(hidden_tabs)]
        for own, tab in enumerate(hidden):
            await tab.evaluate(HIDE)
            await tab.evaluate(BEGIN, [url, f"hidden/{own}"])
        visible = [await open_tab(context, address) for _ in range(visible_tabs)]
        await asyncio.gather(*(tab.evaluate(BEGIN, [url, str(own)]) for own, tab in enumerate(visible)))
        await receive_and_publish(visible, client, "first")
        await receive_and_publish(visible, client, "second")
        await have_seen(hidden, "second", 4)
        await conflate_and_watch(visible, hidden, client)
