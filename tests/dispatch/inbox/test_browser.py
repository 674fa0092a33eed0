"""The inbox in a real Chromium: two tabs of one receiver, marks on both, and a page that was away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from playwright.async_api import Page

from tests.browser.conftest import Serve, browser, chromium, package, page, serve
from tests.dispatch.conftest import Running, running

__all__ = ["browser", "chromium", "package", "page", "serve"]  # the browser tests' own

DEADLINE_S = 60
HTML = '<!doctype html><script type="module">window.godwit = await import("/godwit-client/src/browser.js");</script>'
OPEN = """async ([node, url, token]) => {
  const client = new godwit.Client(node, { token });
  window.faults = [];
  window.inbox = new godwit.Inbox(client, {
    url, token, subject: "/$inbox/default/user:42", onError: (error) => faults.push(String(error)),
  });
  await inbox.ready;
}"""
IDS = "() => inbox.items.map((item) => item.id)"


async def open_inbox(opened: Page, address: str, both: Running, token: str) -> None:
    await opened.goto(address)
    await opened.wait_for_function("window.godwit !== undefined")
    await opened.evaluate(OPEN, [both.node_url, both.url, token])


async def send(both: Running, first: int, count: int) -> None:
    for number in range(first, first + count):
        body: dict[str, Any] = {"to": {"receiver": "user:42"}, "content": {"title": f"number {number}"}}
        assert (await both.api("PUT", f"/v1/notifications/n{number}", body))[0] == 202


async def test_two_tabs_show_each_item_once_and_share_marks(
    page: Page, serve: Serve, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    address = await serve(HTML)
    settings = {"dispatch": {"origins": [address.rstrip("/")]}}
    async with asyncio.timeout(DEADLINE_S), running(tmp_path, settings) as both:
        await both.api("PUT", "/v1/receivers/user:42", {})
        token = await both.make_token("user:42")
        await send(both, 0, 3)
        await open_inbox(page, address, both, token)
        other = await page.context.new_page()
        await open_inbox(other, address, both, token)
        await send(both, 3, 2)
        for tab in (page, other):
            await tab.wait_for_function("() => inbox.items.length === 5 && inbox.unread === 5")
            assert await tab.evaluate(IDS) == ["n4", "n3", "n2", "n1", "n0"]
        await page.evaluate("() => inbox.mark('read', [inbox.items[2]])")
        for tab in (page, other):
            await tab.wait_for_function("() => inbox.unread === 4")
            assert await tab.evaluate("() => inbox.items[2].flags") == ["seen", "read"]
        await other.evaluate("() => inbox.mark('read')")
        await page.wait_for_function("() => inbox.unread === 0 && inbox.items.length === 5")
        assert await page.evaluate("() => faults") == [] == await other.evaluate("() => faults")
