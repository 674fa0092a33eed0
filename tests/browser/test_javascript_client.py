"""The JavaScript client in a real Chromium, imported by `<script type="module">` from what `npm pack` makes."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from playwright.async_api import Page

from godwit import testing
from godwit.client import Client
from tests.browser.conftest import Serve
from tests.faults.cutting_proxy import CuttingProxy

DEADLINE_S = 60
SUBJECT = "/rooms/kitchen/temperature"
BLANK = '<!doctype html><script type="module">window.godwit = await import("/godwit-client/src/browser.js");</script>'


async def open_blank(page: Page, serve: Serve) -> str:
    address = await serve(BLANK)
    await page.goto(address)
    await page.wait_for_function("window.godwit !== undefined")
    return address


async def publish_numbers(client: Client, subject: str, first: int, count: int) -> None:
    for number in range(first, first + count):
        await client.publish(subject, number)


async def test_five_lines_show_a_live_value(page: Page, serve: Serve, root: Path) -> None:
    async with testing.node() as node, Client(node.url) as client, asyncio.timeout(DEADLINE_S):
        await client.publish(SUBJECT, {"celsius": 20.5})
        html = (root / "examples/live_value.html").read_text()
        assert html.count("ws://127.0.0.1:8800") == 1
        await page.goto(await serve(html.replace("ws://127.0.0.1:8800", node.url)))
        # not by `expect`, whose own script a browser of 2021 cannot run
        await page.wait_for_function("temperature.textContent === '20.5'")
        await client.publish(SUBJECT, {"celsius": 21})
        await page.wait_for_function("temperature.textContent === '21'")
        assert await page.evaluate("document.querySelector('p').textContent.trim()") == "In the kitchen it is 21 °C."


EVERYTHING = """async ([url, encoding]) => {
  const client = new godwit.Client(url, { encoding });
  const subject = `/page/${encoding}`;
  const subscription = client.subscribe(subject, { snapshot: false });
  await subscription.joined();
  await client.publish(subject, { x: "é😀" });
  await client.publish(subject, Uint8Array.of(0, 255));
  await client.publish(subject, "text");
  const worker = client.subscribe(`${subject}/double`, (request) => client.reply(request, request.json() * 2));
  await worker.joined();
  const found = [(await client.request(`${subject}/double`, 21)).json()];
  for await (const message of subscription) {
    found.push(message.kind === "bytes" ? [...message.bytes()] : message.kind === "text" ? message.text() : message.json());
    if (found.length === 4) break;
  }
  const refusal = await client.publish("/$node/x", 1).catch((error) => [error.name, error.code, error.codeName]);
  await client.close();
  return [...found, refusal, await client.publish("/a", 1).catch((error) => error.name)];
}"""


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_a_page_publishes_reads_asks_and_answers(page: Page, serve: Serve, encoding: str) -> None:
    async with testing.node() as node, asyncio.timeout(DEADLINE_S):
        await open_blank(page, serve)
        assert await page.evaluate(EVERYTHING, [node.url, encoding]) == [
            *(42, {"x": "é😀"}, [0, 255], "text"),
            ["CommandRefused", 4101, "SubjectInvalid"],
            "ClientClosed",
        ]


@pytest.mark.parametrize("transport", ["sse", "poll"])
async def test_a_page_does_the_same_over_http(page: Page, serve: Serve, transport: str) -> None:
    script = EVERYTHING.replace("{ encoding }", "{ transport: encoding }")
    assert script != EVERYTHING
    async with testing.node() as node, asyncio.timeout(DEADLINE_S):
        await open_blank(page, serve)
        assert await page.evaluate(script, [node.url, transport]) == [
            *(42, {"x": "é😀"}, [0, 255], "text"),
            ["CommandRefused", 4101, "SubjectInvalid"],
            "ClientClosed",
        ]


async def test_a_page_without_websockets_falls_back_and_says_so(page: Page, serve: Serve) -> None:
    async with testing.node() as node, Client(node.url) as client, asyncio.timeout(DEADLINE_S):
        await page.add_init_script(
            "window.WebSocket = class { constructor() { setTimeout(() => this.onclose({ code: 1006, reason: '' })); }"
            " close() {} };"
        )
        await open_blank(page, serve)
        await page.evaluate(
            """async (url) => {
              window.seen = [];
              window.client = new godwit.Client(url);
              await client.subscribe("/fallen/*", (message) => void seen.push(message.json())).joined();
            }""",
            node.url,
        )
        await publish_numbers(client, "/fallen/a", 0, 50)
        await page.wait_for_function("seen.length >= 50")
        assert await page.evaluate("[seen, client.transport]") == [list(range(50)), "sse"]
        await page.evaluate("client.close()")


FOLLOW = """async ([url, encoding, subject, settings]) => {
  window.seen = [];
  window.client = new godwit.Client(url, { encoding, settings: { reconnectFirstMs: 4, reconnectMaxMs: 40, ...settings } });
  window.subscription = client.subscribe(subject, {}, {
    message: (message) => void seen.push(message.json()),
    gap: (gap) => void seen.push(`gap ${gap.missed}`),
  });
  await subscription.joined();
}"""


@pytest.mark.parametrize("encoding", ["json", "binary"])
async def test_a_page_that_is_cut_many_times_misses_nothing_and_repeats_nothing(
    page: Page, serve: Serve, encoding: str
) -> None:
    async with testing.node() as node, Client(node.url) as client, asyncio.timeout(DEADLINE_S):
        host, port = node.url.removeprefix("ws://").partition("/")[0].split(":")
        async with CuttingProxy(Random(7), (host, int(port)), 2_000) as proxy:
            await open_blank(page, serve)
            await page.evaluate(FOLLOW, [proxy.url, encoding, "/cut/*", {}])
            published = 0
            while proxy.cuts < 25:
                await publish_numbers(client, f"/cut/{published % 3}", published, 1)
                published += 1
                if published % 100 == 0:  # a log keeps a thousand of each
                    await page.wait_for_function("n => seen.length >= n", arg=published)
            proxy.calm()
            await page.wait_for_function("n => seen.length >= n", arg=published)
            assert await page.evaluate("seen.slice().sort((a, b) => a - b)") == list(range(published))
            assert await page.evaluate("subscription.counts.missing") == 0
            await page.evaluate("client.close()")


async def test_a_slow_page_is_not_drowned_and_misses_nothing(page: Page, serve: Serve) -> None:
    async with testing.node() as node, Client(node.url) as client, asyncio.timeout(DEADLINE_S):
        await open_blank(page, serve)
        await page.evaluate(
            """async (url) => {
              window.client = new godwit.Client(url, { settings: { itemsMax: 10 } });
              window.subscription = client.subscribe("/flood");
              await subscription.joined();
            }""",
            node.url,
        )
        await asyncio.gather(*(client.publish("/flood", number) for number in range(500)))
        seen = await page.evaluate(
            """async () => {
              const seen = [];
              for await (const item of subscription.items()) {
                if (item.type === "gap") seen.push(`gap ${item.missed}`);
                if (item.type === "message") seen.push(item.json());
                if (seen.length === 500) return [seen, subscription.counts];
                await new Promise((resolve) => setTimeout(resolve)); // so that frames come in between
              }
            }"""
        )
        assert seen[0] == list(range(500))
        assert seen[1]["joins"] > 10 and seen[1]["missing"] == 0  # it was left and taken up again
        await page.evaluate("client.close()")


HIDE = """(state) => {
  Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def test_a_hidden_page_leaves_and_goes_on_where_it_stood(page: Page, serve: Serve) -> None:
    async with testing.node() as node, Client(node.url) as client, asyncio.timeout(DEADLINE_S):
        await open_blank(page, serve)
        await page.evaluate(
            """async (url) => {
              window.seen = [];
              window.client = new godwit.Client(url, { pauseHiddenMs: 20 });
              await client.subscribe("/tab", (message) => void seen.push(message.json())).joined();
            }""",
            node.url,
        )
        await publish_numbers(client, "/tab", 0, 3)
        await page.wait_for_function("seen.length === 3")
        await page.evaluate(HIDE, "hidden")
        await page.wait_for_function("client.isPaused && !client.isConnected")
        await publish_numbers(client, "/tab", 3, 3)
        assert await page.evaluate("seen.length") == 3
        await page.evaluate(HIDE, "visible")
        await page.wait_for_function("seen.length === 6")
        assert await page.evaluate("seen") == list(range(6))
        await page.evaluate("client.close()")


async def test_a_reloaded_page_goes_on_from_its_saved_place(page: Page, serve: Serve) -> None:
    begin = """async (url) => {
      window.seen = [];
      const positions = new godwit.PositionStorage("test");
      window.client = new godwit.Client(url, { positions, settings: { positionsSaveMs: 3_600_000 } });
      await client.subscribe("/saved/*", (message) => void seen.push(message.json())).joined();
    }"""
    async with testing.node() as node, Client(node.url) as client, asyncio.timeout(DEADLINE_S):
        address = await open_blank(page, serve)
        await page.evaluate(begin, node.url)
        read: list[Any] = []
        for run in range(3):
            await publish_numbers(client, "/saved/a", 10 * run, 5)
            await page.wait_for_function("n => seen.length === n", arg=5 if run == 0 else 10)
            read += await page.evaluate("seen")
            await page.goto(address)  # left without a word but the browser's own
            await page.wait_for_function("window.godwit !== undefined")
            await publish_numbers(client, "/saved/a", 10 * run + 5, 5)
            await page.evaluate(begin, node.url)
        assert read == list(range(25))
        entries = await page.evaluate("Object.entries(localStorage).filter(([key]) => key.endsWith(':/saved/*'))")
        [[_, saved]] = entries  # a reload is the same tab
        assert json.loads(saved)["resumePoint"]["after"]["/saved/a"].endswith(".25")


async def test_each_message_reaches_each_tab_of_one_storage(page: Page, serve: Serve) -> None:
    begin = """async (url) => {
      window.seen = [];
      const positions = new godwit.PositionStorage("tabs");
      window.client = new godwit.Client(url, { positions, settings: { positionsSaveMs: 10 } });
      await client.subscribe("/tabs/*", (message) => void seen.push(message.json())).joined();
    }"""
    async with testing.node() as node, Client(node.url) as client, asyncio.timeout(DEADLINE_S):
        address = await open_blank(page, serve)
        await page.evaluate(begin, node.url)
        await publish_numbers(client, "/tabs/a", 0, 5)
        await page.wait_for_function("seen.length === 5 && Object.keys(localStorage).length === 1")
        other = await page.context.new_page()
        await other.goto(address)
        await other.evaluate(
            "sessionStorage.setItem('godwit-tab', '%s')" % (await page.evaluate("sessionStorage['godwit-tab']"))
        )
        await other.reload()  # as a tab that was duplicated: with the storage of the first
        await other.wait_for_function("window.godwit !== undefined")
        await other.evaluate(begin, node.url)
        await other.wait_for_function(
            "(id) => sessionStorage['godwit-tab'] !== id", arg=await page.evaluate("sessionStorage['godwit-tab']")
        )
        await publish_numbers(client, "/tabs/a", 5, 5)
        for tab in (page, other):
            await tab.wait_for_function("seen.at(-1) === 9")
            assert (await tab.evaluate("seen"))[-5:] == [*range(5, 10)]
        await page.wait_for_function("Object.keys(localStorage).length === 2")
        await other.close()


def test_the_package_holds_what_is_needed_and_nothing_else(package: Path, root: Path) -> None:
    found = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
    sources = {
        str(path.relative_to(root / "clients/javascript")) for path in (root / "clients/javascript/src").rglob("*.js")
    }
    types = {name.replace("src/", "types/").replace(".js", ".d.ts") for name in sources}
    bundles = {f"dist/{name}" for name in ("browser.cjs", "node.cjs", "godwit-client.js", "godwit-client.js.map")}
    assert found == {"package.json", "README.md", "LICENSE"} | sources | types | bundles
    manifest = json.loads((package / "package.json").read_text())
    assert set(manifest["dependencies"]) == {"ws"}
    for entry in ("./src/node.js", "./src/browser.js", "./types/node.d.ts", "./types/browser.d.ts"):
        assert (package / entry).is_file()


async def run(*words: str | Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *map(str, words), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_the_package_is_imported_by_its_name_in_node_and_by_typescript(
    package: Path, tmp_path: Path, root: Path
) -> None:
    (tmp_path / "node_modules").mkdir()
    shutil.copytree(package, tmp_path / "node_modules/godwit-client")
    shutil.copytree(root / "clients/javascript/node_modules/ws", tmp_path / "node_modules/ws")  # as npm does
    program = tmp_path / "program.mjs"
    program.write_text(
        'import { Client, Code, PositionFile } from "godwit-client";\n'
        'import { Client as InBrowsers } from "godwit-client/browser";\n'
        "console.log(typeof Client, Code.Draining, typeof PositionFile, InBrowsers === Client);\n"
    )
    assert (await run("node", program)).split() == ["function", "4200", "function", "false"]
    typed = tmp_path / "typed.mts"
    typed.write_text(
        'import { Client, type Item, type Message, PositionStorage } from "godwit-client/browser";\n'
        'const client = new Client([["wss://a", 2], "wss://b"], { encoding: "binary", positions: new PositionStorage() });\n'
        'client.subscribe("/a", { last: 3 }, { message: (message: Message) => message.json(), gap: (gap) => gap.missed });\n'
        'for await (const item of client.subscribe("/b").items()) { const known: Item = item; console.log(known.type); }\n'
        "// @ts-expect-error a subject is text\n"
        "client.subscribe(7);\n"
    )
    options = (
        "--noEmit --strict --target es2022 --module nodenext --lib es2023,dom,esnext.disposable --skipLibCheck false"
    )
    await run("node", root / "clients/javascript/node_modules/typescript/bin/tsc", *options.split(), typed)
