"""The tutorial's live page as a reader makes it: its commands word for word (but for ports), opened in a real Chromium."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from playwright.async_api import Page, expect

from godwit import testing
from godwit.children import follow_parent
from godwit.client import Client
from godwit.verify.brokers.broker import find_port

DEADLINE_S = 60


def read_section(root: Path) -> list[str]:
    """The shell lines of section 5."""
    text = (root / "docs/tutorial.md").read_text(encoding="utf-8")
    section = text[text.index("## 5.") : text.index("## 6.")]
    return re.findall(r"^    (\S.*)$", section, re.MULTILINE)


async def wait_for_page(url: str, server: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while True:
            assert server.returncode is None
            try:
                return await asyncio.to_thread(lambda: urlopen(url, timeout=5).close())
            except OSError:
                await asyncio.sleep(0.05)


async def test_the_live_page_shows_what_is_published_and_comes_back_with_the_node(
    page: Page, root: Path, tmp_path: Path
) -> None:
    make, serve, publish = read_section(root)
    for name in ("clients", "examples", ".venv"):
        (tmp_path / name).symlink_to(root / name)
    made = await asyncio.create_subprocess_shell(make, cwd=tmp_path)
    assert await made.wait() == 0
    shown = tmp_path / "live/live_value.html"
    port = find_port()
    assert "8080" in serve and serve.startswith(".venv/bin/python ")
    command = serve.replace("8080", str(port)).replace(".venv/bin/python", sys.executable).split()
    web = await asyncio.create_subprocess_exec(
        *command, cwd=tmp_path, stderr=subprocess.DEVNULL, preexec_fn=follow_parent()
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            async with testing.node() as node:
                async with Client(node.url) as client:  # as section 3 left it
                    await client.publish("/rooms/kitchen/temperature", {"celsius": 21.5})
                    await client.publish("/rooms/kitchen/temperature", {"humidity": 40}, merge=True)
                place = {"client": {"address": str(node.client)}}
                html = shown.read_text(encoding="utf-8")
                shown.write_text(html.replace("ws://127.0.0.1:8800", f"ws://{node.client}"), encoding="utf-8")
                url = f"http://127.0.0.1:{port}/live_value.html"
                await wait_for_page(url, web)
                await page.goto(url)
                await expect(page.locator("#temperature")).to_have_text("21.5")
                await say(publish, node.url, tmp_path)
                await expect(page.locator("#temperature")).to_have_text("22.5")
            async with testing.node(place) as node:
                await say(publish.replace("22.5", "19"), node.url, tmp_path)
                await expect(page.locator("#temperature")).to_have_text("19", timeout=DEADLINE_S * 1_000)
    finally:
        web.terminate()
        await web.wait()


async def say(line: str, url: str, folder: Path) -> None:
    """The tutorial's publish, at the node under test."""
    line = line.replace(".venv/bin/godwit publish", f"{sys.executable} -m godwit publish --server {url}")
    shell = await asyncio.create_subprocess_shell(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _, errors = await shell.communicate()
    assert shell.returncode == 0, errors.decode()
