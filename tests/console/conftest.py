"""A real headless Chromium for the page's tests: found, never downloaded; skipped by name without one, never under CI."""

import os
import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, async_playwright

NAMES = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",  # it only ever opens the node under test
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The program's path."""
    found = next(filter(None, (shutil.which(name) for name in NAMES if name)), None)
    if found is None and os.environ.get("CI") == "true":
        pytest.fail("no Chromium found, and under CI the page's tests may not be left out")
    if found is None:
        pytest.skip("no Chromium found: install chromium, or set CHROMIUM to its path")
    return found


@pytest.fixture
async def page(chromium: str) -> AsyncIterator[Page]:
    """A fresh page in a fresh browser; an error in a script, or a request to anywhere else, fails the test."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        opened = await browser.new_page(viewport={"width": 1200, "height": 900})
        faults: list[str] = []
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.on("console", lambda line: faults.append(line.text) if "Content Security Policy" in line.text else None)
        yield opened
        await browser.close()
        assert not faults
