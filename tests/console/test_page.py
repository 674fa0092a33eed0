"""The page in a real Chromium, on a real node: figures that move, a live tail, strangers' words that stay words."""

import os
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from godwit import testing
from godwit.client import Client
from godwit.engine import Draft

HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>'
WAIT_MS = 10_000


@pytest.fixture(autouse=True)
def patience() -> None:
    expect.set_options(timeout=WAIT_MS)


async def open_page(page: Page, node: testing.RunningNode) -> None:
    await page.goto(f"{node.admin_url}/")
    await expect(page.get_by_role("status").first).to_have_text("ready")


async def tail(page: Page, pattern: str) -> None:
    form = page.locator("#tail-form")
    await form.get_by_label("Pattern").fill(pattern)
    await form.get_by_role("button", name="Tail").click()
    await expect(page.locator("#tail-status")).to_have_text(f"tailing {pattern}")


async def test_it_shows_this_hosts_telemetry_live(page: Page, root: Path, tmp_path: Path) -> None:
    async with testing.node({"demo": {"enabled": True, "interval_ms": 100}, "node": {"name": "demo"}}) as node:
        await open_page(page, node)
        rows = page.locator("#messages tbody tr")
        await tail(page, "/host/**")
        await expect(rows.filter(has_text="/cpu/0").nth(2)).to_be_visible()
        await expect(rows.first.locator("td").nth(2)).to_have_text(re.compile(r"^\d+\.\d+$"))
        published = page.locator("#figures div", has_text="published / s").locator("dd")
        await expect(published).not_to_have_text(re.compile("^(–|0)$"))
        await expect(page.locator("#subjects tbody tr").first).to_contain_text("/host/")
        await expect(page.locator("#connections tbody tr").first).to_contain_text("127.0.0.1")
        # the picture in docs/ is made by this test, when somebody wants a new one
        folder = root / "docs" if os.environ.get("KEEP_SCREENSHOT") else tmp_path
        await page.screenshot(path=folder / "page.png")
        assert (folder / "page.png").stat().st_size > 20_000


async def test_what_strangers_write_is_shown_and_never_run(page: Page) -> None:
    subject = "/room/<b onclick=x>"
    async with testing.node() as node, Client(node.url) as client, client.subscribe(subject) as listening:
        await listening.joined()
        await client.publish(subject, {HOSTILE: HOSTILE})
        await open_page(page, node)
        await tail(page, "/room/**")
        await client.publish(subject, HOSTILE + "\x1b[31m\u202e")
        await expect(page.locator("#messages")).to_contain_text("<script>window.broken=1</script>\\u001b[31m\\u202e")
        await expect(page.locator("#messages")).to_contain_text(subject)
        await expect(page.locator("#subjects")).to_contain_text(subject)
        assert await page.evaluate("window.broken") is None
        assert await page.locator("main img, main script, td b").count() == 0


async def test_a_subject_is_tailed_by_a_click_and_a_pause_holds_still(page: Page) -> None:
    async with testing.node() as node:
        node.node.engine.publish_many([Draft("/a/1", b"1"), Draft("/a/2", b'"two"')])
        await open_page(page, node)
        await page.get_by_role("button", name="/a/2").click()
        rows = page.locator("#messages tbody tr")
        await expect(rows).to_have_count(1)
        await expect(rows.first).to_contain_text('"two"')
        await page.get_by_role("button", name="Pause").click()
        node.node.engine.publish_many([Draft("/a/2", b"3")] * 500)
        await expect(page.locator("#figures")).to_contain_text("kept")
        await expect(rows).to_have_count(1)
        await page.get_by_role("button", name="Pause").click()
        await expect(rows).to_have_count(200)


async def test_a_wrong_pattern_and_a_lost_node_are_said(page: Page) -> None:
    async with testing.node() as node:
        await open_page(page, node)
        await page.locator("#tail-form").get_by_label("Pattern").fill("no/slash")
        await page.get_by_role("button", name="Tail").click()
        await expect(page.locator("#tail-status")).to_contain_text("Invalid")
        await page.locator("#subjects-form").get_by_label("Pattern").fill("/a/**/b")
        await page.locator("#subjects-form").get_by_role("button", name="Show").click()
        await expect(page.locator("#subjects-form .status")).to_contain_text("** before its last segment")
    await expect(page.get_by_role("status").first).to_have_text("unreachable")


async def test_it_is_usable_by_keyboard_and_every_control_has_a_name(page: Page) -> None:
    async with testing.node() as node:
        await open_page(page, node)
        names = await page.eval_on_selector_all(
            "input, button, table, [role=region]",
            "all => all.map(e => (e.labels?.[0] ?? e).textContent.trim() || e.ariaLabel || e.closest('[role=region]')?.ariaLabel)",
        )
        assert all(names)
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "Skip to the live tail"
        for _ in range(12):
            await page.keyboard.press("Tab")
            assert await page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
