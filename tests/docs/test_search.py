"""The built site in a real browser: its search finds a page, and works without anything from elsewhere."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

pytestmark = pytest.mark.long


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Requests are not printed."""


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the site."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    subprocess.run(command, cwd=root, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=True, timeout=300)
    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("conflation", "Conflation and batching"),
        ("mqtt_inflight_max", "Limits"),
        ("Keycloak", "Per-user notifications"),
    ],
)
async def test_the_search_finds_a_page(page: Page, site: str, words: str, title: str) -> None:
    foreign: list[str] = []
    page.on("request", lambda request: foreign.append(request.url) if not request.url.startswith(site) else None)
    await page.goto(site)
    await page.get_by_role("textbox", name="Search").fill(words)
    results = page.locator(".md-search-result__list")
    await expect(results.get_by_role("link").filter(has_text=title).first).to_be_visible()
    assert foreign == []
