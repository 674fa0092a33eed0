"""Runs axe-core on a page: violations of WCAG 2.1 AA and of its own best practices."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.async_api import Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


async def find_faults(page: Page, root: Path) -> list[str]:
    """Each rule that the page breaks, with the first elements that break it."""
    await page.evaluate((root / "console/node_modules/axe-core/axe.min.js").read_text())
    found = await page.evaluate("rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", RULES)
    return [
        f"{one['id']}: {json.dumps([node['html'][:160] for node in one['nodes']][:3])}" for one in found["violations"]
    ]
