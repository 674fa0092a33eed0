"""A real headless Chromium for the page's tests: found, never downloaded; skipped by name without one, never under CI."""

import os
import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

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


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """One for all tests of a process: to start it takes a second of a core."""
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield started
        await started.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A fresh page that shares nothing with another's; an error in a script, or a request to anywhere else, fails the test."""
    async with await browser.new_context(viewport={"width": 1200, "height": 900}) as context:
        opened = await context.new_page()
        faults: list[str] = []
        opened.on("pageerror", lambda error: faults.append(str(error)))
        opened.on("console", lambda line: faults.append(line.text) if "Content Security Policy" in line.text else None)
        yield opened
    assert not faults
