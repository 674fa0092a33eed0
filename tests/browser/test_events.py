"""Server-Sent Events with other readers: the EventSource of a real browser, and an independent one for Node.js. Their
connection is cut repeatedly; each reconnects with its last id, and receives every message once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from random import Random

import pytest
from aiohttp import ClientSession
from playwright.async_api import Page

from tests.faults.cutting_proxy import CuttingProxy
from tests.node_process import NodeProcess, running_node

DEADLINE_S = 90
SUBJECTS = ("/events/a", "/events/b")
COUNT = 200
END = 20_000
CUT_BYTES = 20_000
# Both forward every event of a stream, with its kind if it is not a message.
LISTEN = """(stream, tell) => {
  stream.onmessage = (event) => tell({ data: JSON.parse(event.data) });
  for (const kind of ["resume_token", "gap", "dropped", "closed"]) {
    stream.addEventListener(kind, (event) => tell({ kind, data: JSON.parse(event.data) }));
  }
}"""
PROGRAM = f"""
import {{ EventSource }} from "eventsource";
({LISTEN})(new EventSource(process.argv[1]), (push) => console.log(JSON.stringify(push)));
"""
BROWSER = f"(address) => ({LISTEN})(new EventSource(address), note)"


class Heard:
    """The events that a client received, in order of arrival."""

    def __init__(self) -> None:
        self.found: list[dict[str, object]] = []
        self.more = asyncio.Event()

    def note(self, push: dict[str, object]) -> None:
        self.found.append(push)
        self.more.set()


async def publish(node: NodeProcess, subject: str, first: int, count: int) -> None:
    async with ClientSession() as session:
        for number in range(first, first + count):
            address = f"http://{node.host}:{node.port}/v1/messages?subject={subject}"
            # A line's end within JSON is a blank; within text it is part of what was said.
            async with session.post(
                address, data=f'{{"n":\n{number}}}', headers={"Content-Type": "application/json"}
            ) as answer:
                assert answer.status == 201


def numbers(found: list[dict[str, object]], subject: str) -> list[int]:
    """The contents of a subject's messages in their order, repeats dropped by position as a client must."""
    seen, kept = 0, []
    for each in found:
        data = each["data"]
        if each.get("kind") == "resume_token":
            continue
        assert isinstance(data, dict) and "kind" not in each, each
        if data["message"] == subject and (at := int(str(data["at"]).split(".")[1])) > seen:
            seen = at
            kept.append(int(data["content"]["n"]))
    return kept


async def drive(node: NodeProcess, proxy: CuttingProxy, heard: Heard) -> None:
    """Publishes while the proxy cuts, then lets the client come to rest: it has heard everything, each once, in order."""
    while not heard.found:
        await heard.more.wait()  # the joins are complete, and the client has an id to come back with
    for first in range(0, COUNT, 20):
        await asyncio.gather(*(publish(node, subject, first, 20) for subject in SUBJECTS))
        if first == COUNT // 2:
            while proxy.cuts == 0:
                await asyncio.gather(*(publish(node, subject, 10_000, 1) for subject in SUBJECTS))
    proxy.calm()
    ends = [publish(node, subject, END, 1) for subject in SUBJECTS]
    await asyncio.gather(*ends)
    while any(END not in numbers(heard.found, subject) for subject in SUBJECTS):
        heard.more.clear()
        await heard.more.wait()
    assert proxy.cuts > 0
    for subject in SUBJECTS:
        assert [n for n in numbers(heard.found, subject) if n < 10_000] == list(range(COUNT))


def address_of(proxy: CuttingProxy) -> str:
    return proxy.url.replace("ws:", "http:") + "/v1/stream?subject=" + "&subject=".join(SUBJECTS)


@pytest.mark.long
async def test_an_independent_event_source_misses_nothing(root: Path) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        running_node() as node,
        CuttingProxy(Random(5), (node.host, node.port), CUT_BYTES) as proxy,
    ):
        process = await asyncio.create_subprocess_exec(
            *("node", "--input-type=module", "-e", PROGRAM, address_of(proxy)),
            cwd=root / "clients/javascript",
            stdout=asyncio.subprocess.PIPE,
        )
        heard, is_over = Heard(), False

        async def read() -> None:
            assert process.stdout is not None
            while line := await process.stdout.readline():
                heard.note(json.loads(line))
            assert is_over, "the client ended by itself: make .make/node_modules brings what it needs"

        driving = asyncio.create_task(drive(node, proxy, heard))
        reading = asyncio.create_task(read())
        try:
            await asyncio.wait([driving, reading], return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_over = driving.done()
            driving.cancel()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            await reading
        await driving


@pytest.mark.long
async def test_the_event_source_of_a_browser_misses_nothing(page: Page) -> None:
    async with (
        asyncio.timeout(DEADLINE_S),
        running_node() as node,
        CuttingProxy(Random(6), (node.host, node.port), CUT_BYTES) as proxy,
    ):
        heard = Heard()
        await page.expose_function("note", heard.note)
        await page.goto(f"http://{node.host}:{node.port}/")
        await page.evaluate(BROWSER, address_of(proxy))
        await drive(node, proxy, heard)
