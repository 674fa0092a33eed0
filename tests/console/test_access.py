"""Accessibility: axe-core finds no violation of WCAG 2.1 AA on any page, light, dark and on a phone; and the docs' pictures.

With KEEP_SCREENSHOT set the pictures in docs/console are taken again, of a node with 100,000 subjects.
"""

import asyncio
import json
import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from godwit import testing
from godwit.client import Client
from godwit.engine import Draft
from tests.browser.axe import find_faults
from tests.console.test_console import PAGES, open_page

LOOKS = {
    "light": {"color_scheme": "light", "width": 1280, "height": 860},
    "dark": {"color_scheme": "dark", "width": 1280, "height": 860},
    "phone": {"color_scheme": "light", "width": 390, "height": 844},
}
KEPT = {
    "light": ("overview", "subjects", "subject", "limits"),
    "dark": ("overview", "connections"),
    "phone": ("overview", "subject"),
}
PLACES = {name: name for name in PAGES} | {"subject": "subject?name=/stocks/ibm"}


@pytest.mark.parametrize(
    "look", [pytest.param(look, marks=[] if look == "light" else pytest.mark.long) for look in LOOKS]
)
async def test_axe_finds_no_fault_on_any_page(page: Page, root: Path, tmp_path: Path, look: str) -> None:
    wanted = LOOKS[look]
    await page.emulate_media(color_scheme=wanted["color_scheme"])
    await page.set_viewport_size({"width": wanted["width"], "height": wanted["height"]})
    is_kept = bool(os.environ.get("KEEP_SCREENSHOT"))
    folder = root / "docs/console" if is_kept else tmp_path
    settings = {
        "demo": {"enabled": True, "interval_ms": 200},
        "node": {"name": "harbour-1"},
        "limits": {"log_messages_max": 500},
    }
    async with testing.node(settings) as node, Client(node.url) as client, client.subscribe("/stocks/*") as listening:
        await listening.joined()
        working = asyncio.create_task(work(node, 100_000 if is_kept else 1_000))
        try:
            for name, place in PLACES.items():
                await open_page(page, node, place)
                await expect(page.locator("h1")).to_be_visible()
                await page.wait_for_timeout(
                    25_000 if is_kept and name == "overview" else 1_500
                )  # charts are drawn as time goes
                assert not await find_faults(page, root), (look, name)
                if not is_kept or name in KEPT[look]:
                    await page.screenshot(path=folder / f"{name}-{look}.png")
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def work(node: testing.RunningNode, subjects: int) -> None:
    """A node that has something to show: many subjects, and a few with prices that change."""
    engine = node.node.engine
    for first in range(0, subjects, 5_000):
        drafts = [
            Draft(f"/sensors/site-{n % 40:02d}/device-{n:06d}", b'{"celsius": 21}')
            for n in range(first, min(first + 5_000, subjects))
        ]
        await asyncio.to_thread(engine.publish_many, drafts)
    names, round_ = ("ibm", "sap", "arm", "msft", "nvda", "tsm", "asml"), 0
    while True:
        round_ += 1
        for at, name in enumerate(names):
            price = round(100 + at * 10 + ((round_ * (at + 3)) % 37) / 3, 2)
            if round_ % (at + 1) == 0:
                engine.publish_many(
                    [Draft(f"/stocks/{name}", json.dumps({"price": price, "size": round_ % 90}).encode())]
                )
        await asyncio.sleep(0.1)


async def find_wide(page: Page) -> list[str]:
    """What has to be pushed sideways to be read: the page, or a table of it."""
    return list(
        await page.evaluate(
            "() => [document.documentElement, ...document.querySelectorAll('main .wide')]"
            ".filter(one => one.scrollWidth > one.clientWidth)"
            ".map(one => `${one.getAttribute('aria-label') ?? 'the page'}: ${one.scrollWidth} in ${one.clientWidth}`)"
        )
    )


@pytest.mark.parametrize("width", [390, 1280])
async def test_nothing_has_to_be_pushed_sideways(page: Page, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 844})
    async with testing.node() as node, Client(node.url) as client, client.subscribe("/stocks/**") as listening:
        await listening.joined()
        await client.publish("/stocks/of-a-long-name/london", {"price": 100.25, "size": 1_000_000, "venue": "XLON"})
        await open_page(page, node, "subject?name=/a/new")
        await page.locator("#publish").get_by_label("Content").fill("1")
        await page.locator("#publish").get_by_label("Idempotency key").fill("short")
        await page.locator("#publish").get_by_role("button", name="Publish").click()
        await expect(page.locator("#publish").get_by_role("status")).to_contain_text("KeyInvalid")
        places = {
            "live?pattern=/stocks/**": "#messages tbody td",
            "subject?name=/stocks/of-a-long-name/london": "#history tbody td",
            "subjects": "#subjects tbody td",
            "connections": "#connections tbody td",
            "limits": "#refusals tbody td",
            "configuration": "#section-node tbody td",
        }
        for place, cell in places.items():
            await open_page(page, node, place)
            await expect(page.locator(cell).first).to_be_visible()
            assert not await find_wide(page), place
        await page.goto(f"{node.admin_url}/#/connections")
        await page.locator("#connections").get_by_role("link").first.click()
        await expect(page.locator("#stands tbody td").first).to_be_visible()
        assert not await find_wide(page)
