"""Requests of a page that a test holds and answers in its own order."""

from __future__ import annotations

import asyncio

from playwright.async_api import Page, Route


async def hold_requests(page: Page, pattern: str, method: str) -> asyncio.Queue[Route]:
    """Those of `method` wait here from now on; others of the pattern go on."""
    held: asyncio.Queue[Route] = asyncio.Queue()

    async def hold(route: Route) -> None:
        if route.request.method == method:
            await held.put(route)
        else:
            await route.fallback()

    await page.route(pattern, hold)
    return held
