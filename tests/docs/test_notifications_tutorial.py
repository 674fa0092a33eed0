"""The tutorial of notifications as a reader makes it: its commands word for word (but for ports), with a real browser at its page."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from godwit.children import follow_parent
from godwit.verify.brokers.broker import find_port

DEADLINE_S = 180
PORTS = ("8080", "8800", "8802", "9000", "2525")
pytestmark = pytest.mark.long


class Reader:
    """Terminals in one folder: what runs until it is stopped, and one shell that keeps its variables."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder, self.ports = folder, {port: str(find_port()) for port in PORTS}
        text = (root / "docs/notifications/tutorial.md").read_text("utf-8")
        for port, free in self.ports.items():
            text = text.replace(f":{port}", f":{free}").replace(f" {port} ", f" {free} ")
        self.settings = re.findall(r'```toml title="dispatch.toml"\n(.*?)```', text, re.DOTALL)[0]
        blocks = re.findall(r'```sh title="terminal (\d)"\n(.*?)```', text, re.DOTALL)
        self.commands = [block for terminal, block in blocks if terminal == "2"]
        self.running = {int(terminal): block for terminal, block in blocks if terminal != "2"}
        self.open: list[Process] = []
        self.done = 0

    async def start(self, terminal: int, more: str = "") -> Process:
        """A terminal whose command goes on."""
        command = "exec " + self.running[terminal].strip() + more
        process = await asyncio.create_subprocess_shell(
            command, cwd=self.folder, stdout=PIPE, stderr=STDOUT, preexec_fn=follow_parent(), env=environment()
        )
        self.open.append(process)
        return process

    async def run(self, count: int = 1) -> str:
        """The next commands of terminal 2, after those that were run before, which only set what the shell keeps."""
        kept = [line for line in self.commands[0].splitlines() if line.startswith("export ")]
        said = ""
        for block in self.commands[self.done : self.done + count]:
            script = "set -e\n" + "\n".join(kept) + "\n" + block
            process = await asyncio.create_subprocess_exec(
                "bash", "-c", script, cwd=self.folder, stdout=PIPE, stderr=PIPE, env=environment()
            )
            out, errors = await process.communicate()
            assert process.returncode == 0, (block, errors.decode())
            said += out.decode()
        self.done += count
        return said

    async def end(self) -> None:
        for process in self.open:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        for process in self.open:
            await process.wait()


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GODWIT_")} | {
        "PYTHONUNBUFFERED": "1"
    }


async def hear(process: Process, words: str) -> str:
    """What a terminal printed, up to a line with these words."""
    assert process.stdout is not None
    said = ""
    while words not in said.rpartition("\n")[0]:
        line = await process.stdout.readline()
        assert line, said
        said += line.decode()
    return said


async def connect(port: str) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", int(port))
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return


async def test_one_call_reaches_a_browser_a_webhook_and_a_mailbox(page: Page, root: Path, tmp_path: Path) -> None:
    for name in ("clients", "examples", ".venv"):
        (tmp_path / name).symlink_to(root / name)
    reader = Reader(root, tmp_path)
    (tmp_path / "dispatch.toml").write_text(reader.settings)
    ports = reader.ports
    own = f" --client 127.0.0.1:{ports['8800']} --admin 127.0.0.1:0 --set mqtt.enabled=false"
    own += f" --set dispatch.address=127.0.0.1:{ports['8802']}"
    try:
        async with asyncio.timeout(DEADLINE_S):
            godwit = await reader.start(1, own)
            await hear(godwit, "listening ")
            assert '"state": "accepted"' in await reader.run()
            url = (await reader.run()).strip()
            html = tmp_path / "shop/inbox.html"
            text = html.read_text()
            html.write_text(text.replace(":8800", f":{ports['8800']}").replace(":8802", f":{ports['8802']}"))
            await reader.start(3)
            await connect(ports["8080"])
            await page.goto(url)
            await expect(page.get_by_role("button", name="Notifications, 1 unread")).to_be_visible()
            other = await page.context.new_page()
            await other.goto(url)
            await page.get_by_role("button", name="Notifications, 1 unread").click()
            await page.get_by_role("button", name="Mark as read").click()
            await expect(other.get_by_role("button", name="Notifications, none unread")).to_be_visible()
            await reader.run()
            await expect(other.get_by_role("button", name="Notifications, 1 unread")).to_be_visible()
            godwit.send_signal(signal.SIGINT)
            drained = asyncio.create_task(godwit.communicate())
            await drained
            godwit = await reader.start(1, own)
            await hear(godwit, "listening ")
            await reader.run()
            hook = await reader.start(4)
            mailbox = await reader.start(5)
            await connect(ports["2525"])
            await connect(ports["9000"])
            assert "ann@example.com" in await reader.run()
            said = await reader.run()
            assert '"state": "accepted"' in said
            assert "Your parcel is here." in await hear(hook, "Delivered")
            assert "Your parcel is here." in await hear(mailbox, "END MESSAGE")
            await expect(other.get_by_role("button", name="Notifications, 2 unread")).to_be_visible()
    finally:
        await reader.end()
    assert reader.done == len(reader.commands)
