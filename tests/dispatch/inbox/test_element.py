"""`<godwit-inbox>` in a real Chromium: five lines on a page, all it does, by keyboard too, and nothing lost when connections are."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.axe import find_faults
from tests.browser.conftest import Serve, browser, chromium, package, page, serve
from tests.dispatch.conftest import Running, running
from tests.dispatch.inbox.test_lists import send, wait_for
from tests.faults.cutting_proxy import CuttingProxy

__all__ = ["browser", "chromium", "package", "page", "serve"]  # the browser tests' own

DEADLINE_S = 180
FIVE_LINES = """
<script type="module" src="/godwit-client/src/inbox/element.js"></script>
<godwit-inbox node="%s" dispatch="%s" categories="news=News and offers"></godwit-inbox>
<script type="module">
  document.querySelector("godwit-inbox").token = () => decodeURIComponent(location.hash.slice(1));
</script>
"""
PAGE = '<!doctype html><html lang="en"><head><title>Shop</title></head><body><main><h1>Shop</h1>%s</main></body></html>'
INBOX = "document.querySelector('godwit-inbox')"
IDS = (
    "() => [...document.querySelector('godwit-inbox').shadowRoot.querySelectorAll('.row')].map((row) => row.dataset.id)"
)


@pytest.fixture
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def rows(page: Page) -> Locator:
    return page.locator("godwit-inbox .row")


def place_of(url: str) -> tuple[str, int]:
    host, _, port = url.partition("://")[2].rpartition(":")
    return host, int(port)


async def open_tab(page: Page, address: str, token: str) -> None:
    await page.goto(f"{address}#{token}")
    await page.wait_for_function("() => document.querySelector('godwit-inbox').inbox !== null")


class Shop:
    """The address of a page that shows the inbox, and the proxies between it and what runs."""

    def __init__(self, mean_bytes: float) -> None:
        """`mean_bytes`: after so many a connection is cut; one to dispatch has several times as many, since an answer is larger."""
        self.node = CuttingProxy(random.Random(1), ("127.0.0.1", 1), mean_bytes)
        self.dispatch = CuttingProxy(random.Random(2), ("127.0.0.1", 1), 6 * mean_bytes)
        self.address = ""

    @asynccontextmanager
    async def running(self, folder: Path) -> AsyncIterator[Running]:
        """A node and dispatch that are new, over what the last ones left."""
        async with running(folder, {"dispatch": {"origins": [self.address.rstrip("/")]}}) as both:
            self.node.redirect(place_of(both.node_url))
            self.dispatch.redirect(place_of(both.url))
            yield both


@asynccontextmanager
async def open_shop(serve: Serve, mean_bytes: float = 0) -> AsyncIterator[Shop]:
    shop = Shop(mean_bytes)
    async with shop.node, shop.dispatch:
        places = (shop.node.url, shop.dispatch.url.replace("ws:", "http:"))
        shop.address = await serve(PAGE % (FIVE_LINES % places))
        yield shop


async def read_focused(page: Page) -> str:
    """The notification of the row that has the focus."""
    script = "() => document.querySelector('godwit-inbox').shadowRoot.activeElement.closest('.row').dataset.id"
    return str(await page.evaluate(script))


async def test_five_lines_show_an_inbox_that_a_mouse_and_a_keyboard_use(
    page: Page, serve: Serve, runtime_folder: Path
) -> None:
    async with asyncio.timeout(DEADLINE_S), open_shop(serve) as shop, shop.running(runtime_folder) as both:
        await send(both, *(f"n{number}" for number in range(55)))
        body = {
            "to": {"receiver": {"id": "ann"}},
            "content": {
                "title": "Your parcel",
                "body": "<b>It</b> is here.",
                "url": "javascript:alert(1)",
                "actions": [
                    {"id": "confirm", "label": "Got it"},
                    {"id": "track", "label": "Track", "url": "https://example.com/t"},
                ],
            },
        }
        await both.api("PUT", "/v1/notifications/parcel", body)
        await wait_for(both, "parcel")
        await open_tab(page, shop.address, await both.make_token("ann"))
        bell = page.get_by_role("button", name="Notifications, 56 unread")
        await expect(bell).to_be_visible()
        await bell.press("Enter")
        await expect(rows(page)).to_have_count(50)
        for key, id_ in (("ArrowDown", "parcel"), ("End", "n6"), ("Home", "parcel")):
            await page.keyboard.press(key)  # the first one begins at the panel, which has the focus when it opens
            assert await read_focused(page) == id_
        first = rows(page).first
        await expect(first).to_contain_text("<b>It</b> is here.")
        assert await first.locator("a.main").count() == 0, "a notification runs no script"
        await expect(first.get_by_role("link", name="Track")).to_have_attribute("href", "https://example.com/t")
        await first.get_by_role("button", name="Got it").click()
        await expect(page.get_by_role("button", name="Notifications, 55 unread")).to_be_visible()
        _, answer = await both.api("GET", "/v1/events?types=item.confirmed", None)
        assert len(answer["events"]) == 1
        await page.get_by_role("button", name="Load older").click()
        await expect(rows(page)).to_have_count(56)
        await expect(page.get_by_role("button", name="Load older")).to_be_hidden()
        await first.locator(".main").focus()
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")  # opens n54: read, and the focus stays
        await expect(rows(page).nth(1)).not_to_have_class("row unread")
        await page.keyboard.press("Delete")  # archives it: the focus is on the row that took its place
        await expect(rows(page)).to_have_count(55)
        await page.keyboard.press("End")
        await page.keyboard.press("ArrowUp")
        assert await read_focused(page) == "n1"
        await page.get_by_role("button", name="Archived", exact=True).click()
        await expect(rows(page)).to_have_count(1)
        await page.get_by_role("button", name="Restore").click()
        await expect(page.get_by_text("No notifications.")).to_be_visible()
        await page.get_by_role("button", name="Unread", exact=True).click()
        await expect(rows(page)).to_have_count(54)
        await page.get_by_role("button", name="Mark all as read").click()
        await expect(page.get_by_role("button", name="Notifications, none unread")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_be_hidden()


async def test_preferences_are_kept_and_axe_finds_no_fault(
    page: Page, serve: Serve, runtime_folder: Path, root: Path
) -> None:
    async with asyncio.timeout(DEADLINE_S), open_shop(serve) as shop, shop.running(runtime_folder) as both:
        await send(both, "a", "b")
        await open_tab(page, shop.address, await both.make_token("ann"))
        await page.get_by_role("button", name="Notifications, 2 unread").click()
        await expect(rows(page)).to_have_count(2)
        for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": width, "height": 800})
            for is_preferences in (False, True):
                if is_preferences:
                    await page.get_by_role("button", name="Preferences").click()
                    await expect(page.get_by_role("checkbox")).to_have_count(6)
                assert not await find_faults(page, root), (scheme, width)
            await page.get_by_role("button", name="Back").click()
        await page.get_by_role("button", name="Preferences").click()
        await page.get_by_role("checkbox", name="News and offers: E-mail").uncheck()
        while not (answer := (await both.api("GET", "/v1/receivers/ann/preferences"))[1]["categories"]):
            pass  # each answer is a turn of the loop
        assert answer == {"news": {"email": False}}
        await page.reload()
        await page.get_by_role("button", name="Notifications").click()
        await page.get_by_role("button", name="Preferences").click()
        await expect(page.get_by_role("checkbox", name="News and offers: E-mail")).not_to_be_checked()


async def test_two_tabs_miss_and_repeat_nothing_when_connections_are_cut_and_both_servers_restart(
    page: Page, serve: Serve, runtime_folder: Path
) -> None:
    names = [f"n{number}" for number in range(30)]
    async with asyncio.timeout(DEADLINE_S), open_shop(serve, 12_000) as shop:
        tabs = [page, await page.context.new_page()]
        for part in range(3):  # each time both servers are new, and what came before the tabs reached them is there
            some = names[part * 10 : part * 10 + 10]
            async with shop.running(runtime_folder) as both:
                await send(both, *some[:3])
                if not part:
                    token = await both.make_token("ann")
                    for tab in tabs:
                        await open_tab(tab, shop.address, token)
                        await tab.evaluate(f"() => {INBOX}.toggle()")
                await send(both, *some[3:])
                if part == 2:
                    shop.node.calm()
                    shop.dispatch.calm()
                for tab in tabs:
                    await tab.wait_for_function(
                        f"() => {INBOX}.inbox.unread === {part * 10 + 10}", timeout=DEADLINE_S * 1_000
                    )
                    await expect(rows(tab)).to_have_count(part * 10 + 10)
                    assert await tab.evaluate(IDS) == names[: part * 10 + 10][::-1]
                if part == 2:
                    await tabs[0].evaluate(f"() => {INBOX}.inbox.mark('read', {INBOX}.inbox.items.slice(0, 4))")
                    await tabs[1].wait_for_function(f"() => {INBOX}.inbox.unread === 26")
        assert shop.node.cuts + shop.dispatch.cuts > 0
