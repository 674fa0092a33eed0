"""The pipelines' report, as kept in docs/reports: complete in light, dark and on a phone, without a finding of axe-core.

With KEEP_SCREENSHOT set its pictures in docs/pipelines are taken again (`make picture` does so, from the page of the last `make pipeline`).
"""

import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.axe import find_faults
from tests.console.test_access import LOOKS

KEPT = ("light", "dark")


@pytest.mark.parametrize("look", LOOKS)
async def test_the_report_can_be_read_by_everybody(page: Page, root: Path, tmp_path: Path, look: str) -> None:
    wanted = LOOKS[look]
    await page.emulate_media(color_scheme=wanted["color_scheme"])
    await page.set_viewport_size({"width": wanted["width"], "height": wanted["height"]})
    await page.goto((root / "docs/reports/pipeline.html").as_uri())
    await expect(page.locator("section.verdict")).to_contain_text("PROVEN")
    assert await page.locator("figure.chart svg:visible").count() == 6, "one for a desk or one for a phone"
    assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (
        "it is wider than the window"
    )
    assert not await find_faults(page, root), look
    is_kept = os.environ.get("KEEP_SCREENSHOT") and look in KEPT
    end = await page.locator("div.charts").bounding_box()
    assert end is not None
    folder = root / "docs/pipelines" if is_kept else tmp_path
    clip = {"x": 0, "y": 0, "width": wanted["width"], "height": end["y"] + end["height"] + 24}
    await page.screenshot(path=folder / f"report-{look}.png", full_page=True, clip=clip)
