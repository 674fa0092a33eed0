"""Tabs of one storage name that are opened, duplicated, reloaded and closed while messages come: a walk with a seed."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from playwright.async_api import Page

from godwit import testing
from godwit.client import Client
from tests.browser.conftest import Serve
from tests.browser.test_javascript_client import open_blank, publish_numbers

DEADLINE_S = 120
STEPS = 40
TABS_MAX = 4

# What a tab has read lies in its sessionStorage, written with each message: it outlives a reload at any moment.
BEGIN = """async ([url, transport]) => {
  window.last = null;
  const positions = new godwit.PositionStorage("walk");
  window.client = new godwit.Client(url, { positions, transport, settings: { positionsSaveMs: 10 } });
  const read = (message) => {
    window.last = message.json();
    sessionStorage.setItem("read", `${sessionStorage.getItem("read") ?? ""}${window.last} `);
  };
  await client.subscribe("/tabs/*", read).joined();
}"""


class Walk:
    """The tabs of one browser, and how far the publisher is."""

    def __init__(self, url: str, transport: str, client: Client, random: Random, first: Page) -> None:
        self._words = [url, transport]
        self._client = client
        self._random = random
        self._address = first.url
        self.tabs = [first]
        self.published = 0

    async def publish(self) -> None:
        count = self._random.randrange(1, 30)
        await publish_numbers(self._client, "/tabs/a", self.published, count)
        self.published += count

    async def begin(self, tab: Page) -> None:
        await tab.wait_for_function("window.godwit !== undefined")
        await tab.evaluate(BEGIN, self._words)

    async def has_read(self, tab: Page) -> None:
        await tab.wait_for_function("(last) => window.last === last", arg=self.published - 1)

    async def step(self) -> None:
        tab = self._random.choice(self.tabs)
        match self._random.choice(["reload", "reload at once", "open", "close"]):
            case "open" if len(self.tabs) < TABS_MAX:
                async with (
                    tab.context.expect_page() as opened
                ):  # a tab that another opens has a copy of its sessionStorage
                    await tab.evaluate("(address) => void window.open(address)", self._address)
                self.tabs.append(await opened.value)
                await self.tabs[-1].evaluate("sessionStorage.removeItem('read')")
                await self.begin(self.tabs[-1])
            case "close" if len(self.tabs) > 1:
                self.tabs.remove(tab)
                await tab.close()
            case what:
                if what != "reload at once":
                    await self.has_read(tab)
                await tab.reload()
                await self.publish()
                await self.begin(tab)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.parametrize("transport", ["websocket", "sse", "poll"])
async def test_no_tab_loses_a_message(page: Page, serve: Serve, transport: str, seed: int) -> None:
    async with testing.node() as node, Client(node.url) as client, asyncio.timeout(DEADLINE_S):
        await open_blank(page, serve)
        walk = Walk(node.url, transport, client, Random(seed), page)
        await walk.begin(page)
        for _ in range(STEPS):
            await walk.publish()
            await walk.step()
        await walk.publish()
        for tab in walk.tabs:
            await walk.has_read(tab)
            read = [int(number) for number in (await tab.evaluate("sessionStorage.read")).split()]
            assert sorted(set(read)) == [*range(read[0], walk.published)], "a message was lost"
        tab_ids = [await tab.evaluate("sessionStorage['godwit-tab']") for tab in walk.tabs]
        assert len(set(tab_ids)) == len(tab_ids)
