"""The console in a real Chromium, on a real node: figures that move, a live tail, strangers' words that stay words."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, Route, WebSocketRoute, expect

from godwit import testing
from godwit.client import Client
from godwit.engine import Draft
from tests.waiting import until

HOSTILE = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>'
TOKEN = "an-admin-token-of-a-test"
WAIT_MS = 15_000
PAGES = ("overview", "live", "subjects", "connections", "limits", "configuration")


@pytest.fixture(autouse=True)
def patience() -> None:
    expect.set_options(timeout=WAIT_MS)


async def open_page(page: Page, node: testing.RunningNode, place: str = "overview") -> None:
    await page.goto(f"{node.admin_url}/#/{place}")
    await page.reload()  # another place of the same page is no new page
    await expect(page.locator("#condition")).to_have_text("ready")


async def test_the_overview_shows_figures_that_move(page: Page) -> None:
    async with testing.node({"demo": {"enabled": True, "interval_ms": 100}, "node": {"name": "demo"}}) as node:
        await open_page(page, node)
        await expect(page.locator("#node-name")).to_have_text("demo")
        tile = page.locator(".tile", has_text="Published").locator("dd").first
        await expect(tile).to_have_text(re.compile(r"^[1-9][\d.,k]*\s*/s$"))
        await expect(page.locator(".chart canvas").first).to_be_visible()
        await expect(page.locator(".chart")).to_have_count(9)
        busiest = page.locator("#busiest li")
        await expect(busiest).to_have_count(8, timeout=20_000)  # the node surveys its subjects every few seconds
        assert all(line.startswith("/host/") for line in await busiest.all_inner_texts()), "and not the node's own"
        label = page.locator("#c-messages-title").locator("xpath=../..").get_by_role("img")
        await expect(label).to_have_attribute("aria-label", re.compile(r"published [\d.,]+/s"))
        await page.get_by_role("button", name="By shard").click()
        await expect(page.locator(".chart .legend", has_text="shard 0").first).to_be_visible()
        await page.get_by_role("link", name="Live", exact=True).click()
        await expect(page.locator("#messages tbody tr").filter(has_text="/cpu/0").nth(2)).to_be_visible()


async def test_the_overview_counts_subjects_of_users_only(page: Page) -> None:
    async with testing.node({"monitoring": {"push": True}}) as node, Client(node.url) as client:
        await client.publish("/rooms/a", 1)
        await client.publish("/rooms/b", 1)
        await until(lambda: node.node.engine.stats()["subjects"] >= 20)  # the node's own metrics have subjects, too
        await open_page(page, node)
        note = page.locator(".tile", has_text="Published")
        await expect(note).to_contain_text(re.compile(r"(?<!\d)2 subjects"))


async def test_what_strangers_write_is_shown_and_never_run(page: Page) -> None:
    subject = "/room/<b onclick=x>"
    async with testing.node() as node, Client(node.url) as client, client.subscribe(subject) as listening:
        await listening.joined()
        await client.publish(subject, {HOSTILE: HOSTILE})
        await open_page(page, node, "live?pattern=/room/**")
        await expect(page.locator("#messages")).to_contain_text("onerror")
        await client.publish(subject, HOSTILE + "\x1b[31m\u202e")
        await expect(page.locator("#messages")).to_contain_text("<script>window.broken=1</script>\\u001b[31m\\u202e")
        await page.locator("#messages").get_by_role("link", name=subject).first.click()
        await expect(page.get_by_role("heading", level=1)).to_have_text(subject)
        await expect(page.locator("#snapshot pre")).to_contain_text("onerror")
        await page.get_by_role("link", name="Subjects").first.click()
        await expect(page.locator("#subjects")).to_contain_text(subject)
        assert await page.evaluate("window.broken") is None
        assert await page.locator("main img, main script, td b").count() == 0


async def test_a_subject_shows_its_state_its_history_and_what_comes(page: Page) -> None:
    async with testing.node() as node:
        node.node.engine.publish_many([Draft("/a/2", b'{"x": %d, "name": "n"}' % number) for number in range(150)])
        await open_page(page, node, "subject?name=/a/2")
        rows = page.locator("#history tbody tr")
        await expect(rows).to_have_count(100)
        await expect(page.locator("#snapshot pre")).to_contain_text('"x": 149')
        await expect(page.locator("#now")).to_contain_text("150 messages")
        await expect(page.locator(".chart", has_text="x").locator("canvas").first).to_be_visible()
        await page.get_by_role("button", name="Pause").click()
        node.node.engine.publish_many([Draft("/a/2", b'{"x": 500}')] * 500)
        await expect(page.locator("#snapshot pre")).to_contain_text('"x": 500')
        await expect(page.locator("#snapshot pre")).to_contain_text('"name": "n"')
        await expect(rows).to_have_count(100)
        await page.get_by_role("button", name="Pause").click()
        await expect(rows).to_have_count(200)


async def test_publishing_says_where_it_was_accepted_or_why_not(page: Page) -> None:
    async with testing.node() as node:
        await open_page(page, node, "subject?name=/a/new")
        form = page.locator("#publish")
        await form.get_by_label("Content").fill('{"big": 12345678901234567890}')
        await form.get_by_role("button", name="Publish").click()
        await expect(form.get_by_role("status")).to_have_text(re.compile(r"^accepted at \d+\.1$"))
        await expect(page.locator("#history tbody")).to_contain_text('{"big":12345678901234567890}')
        await form.get_by_label("Content").fill("{no")
        await form.get_by_role("button", name="Publish").click()
        await expect(form.get_by_role("status")).to_contain_text("This is not JSON")
        await form.get_by_label("Kind").select_option("text")
        await form.get_by_label("Idempotency key").fill("short")
        await form.get_by_role("button", name="Publish").click()
        await expect(form.get_by_role("status")).to_contain_text("KeyInvalid")


async def test_a_connection_is_found_and_disconnected_with_the_token(page: Page) -> None:
    settings = {"admin": {"token": TOKEN}}
    async with testing.node(settings) as node, Client(node.url) as client, client.subscribe("/a") as listening:
        await listening.joined()
        await open_page(page, node, "connections?search=godwit-python")
        row = page.locator("#connections tbody tr")
        await expect(row).to_have_count(1)
        await expect(row).to_contain_text("at the head")
        await row.get_by_role("link").click()
        await expect(page.locator("#stands tbody tr")).to_contain_text("/a")
        await page.get_by_role("button", name="Disconnect").click()
        await page.get_by_role("dialog").get_by_role("button", name="Disconnect").click()
        await expect(page.get_by_role("dialog")).to_contain_text("this needs the admin token")
        await page.get_by_label("Token", exact=True).fill(TOKEN)
        await page.get_by_role("button", name="Keep").click()
        await expect(page.locator(".fault")).to_contain_text("it has ended")


async def test_configuration_and_limits_tell_what_was_set_and_what_was_hit(page: Page, tmp_path: Path) -> None:
    async with testing.node({"limits": {"log_messages_max": 5}}) as node:
        node.node.engine.publish_many([Draft("/a", b"1")] * 12)
        await open_page(page, node, "configuration")
        await page.get_by_label("only changed values").check()
        row = page.locator("tr:visible", has_text="log_messages_max")
        await expect(row).to_contain_text("file")
        await expect(row).to_contain_text("default 1,000")
        await page.get_by_role("link", name="Limits").click()
        await expect(page.locator("#limits tbody tr", has_text="log_messages_max").first).to_contain_text("7 evicted")
        await expect(page.locator(".gauge", has_text="subjects_max")).to_contain_text("1 of 1,000,000")


async def test_a_wrong_pattern_and_a_lost_node_are_said(page: Page) -> None:
    async with testing.node() as node:
        await open_page(page, node, "live?pattern=no/slash")
        await expect(page.locator("#messages").get_by_role("status")).to_contain_text("Invalid")
        await open_page(page, node, "subjects?search=/a/**/b")
        await expect(page.locator("#subjects .fault")).to_contain_text("** before its last segment")
    await expect(page.locator("#condition")).to_have_text("unreachable")
    await expect(page.get_by_role("alert").first).to_contain_text("does not answer")


@pytest.mark.parametrize("place", [*PAGES[:2], *(pytest.param(place, marks=pytest.mark.long) for place in PAGES[2:])])
async def test_it_is_usable_by_keyboard(page: Page, place: str) -> None:
    async with testing.node() as node:
        await open_page(page, node, place)
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "Skip to the page"
        for _ in range(14):
            await page.keyboard.press("Tab")
            assert await page.evaluate(
                "document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle != 'none'"
            )


async def test_a_refused_command_is_shown_with_its_reason(page: Page) -> None:
    async with testing.node() as node:
        await open_page(page, node, "subject?name=/a/new")
        await page.locator("#publish").get_by_label("Content").fill("1")
        await page.locator("#publish").get_by_label("Idempotency key").fill("short")
        await page.locator("#publish").get_by_role("button", name="Publish").click()
        await expect(page.locator("#publish").get_by_role("status")).to_contain_text("KeyInvalid")
        await page.get_by_role("link", name="Limits").click()
        row = page.locator("#refusals tbody tr")
        await expect(row.first).to_contain_text("4116 KeyInvalid")
        await expect(row.first).to_contain_text("127.0.0.1")


@pytest.mark.parametrize("opened", ["**/v1/node*", "**/v1/live"])
async def test_what_is_published_before_the_page_is_connected_waits(page: Page, opened: str) -> None:
    may_open = asyncio.Event()

    async def hold(route: Route) -> None:
        await may_open.wait()
        await route.continue_()

    async def hold_socket(socket: WebSocketRoute) -> None:
        await may_open.wait()
        socket.connect_to_server()

    await page.route(opened, hold)
    await page.route_web_socket(opened, hold_socket)
    async with testing.node() as node:
        await page.goto(f"{node.admin_url}/#/subject?name=/a/new")
        form = page.locator("#publish")
        await form.get_by_label("Content").fill("1")
        await form.get_by_role("button", name="Publish").click()
        await form.get_by_role("button", name="Publish").click()
        await expect(form.get_by_role("status")).to_have_text("publishing")
        may_open.set()
        await expect(form.get_by_role("status")).to_contain_text("accepted at")
        await expect(page.locator("#history tbody tr")).to_have_count(1)


async def test_subscribers_are_counted_each_without_those_of_patterns(page: Page) -> None:
    says = re.compile("patterns.* not counted")
    async with (
        testing.node() as node,
        Client(node.url) as client,
        Client(node.url) as other,
        client.subscribe("/rooms/hall") as by_name,
        other.subscribe("/rooms/hall") as by_name_too,
        client.subscribe("/rooms/**") as by_pattern,
    ):
        for subscription in (by_name, by_name_too, by_pattern):
            await subscription.joined()
        await client.publish("/rooms/attic", 1)
        await open_page(page, node, "subjects?search=/rooms/*&sort=subject&order=asc")
        await expect(page.get_by_role("columnheader", name="Subscribers")).to_have_attribute("title", says)
        sorting = page.get_by_role("button", name="Subscribers", exact=True)  # and no arrow is read out
        await expect(sorting).to_be_visible()
        subscribers = page.locator("#subjects tbody tr td:nth-child(5)")
        # of /rooms/attic, which only the pattern holds, and /rooms/hall
        await expect(subscribers).to_have_text(["0", "2"])
        await open_page(page, node, "subject?name=/rooms/hall")
        fact = page.locator("#now div", has=page.locator("dt", has_text="Subscribers"))
        await expect(fact.locator("dt")).to_have_attribute("title", says)
        await expect(fact.locator("dd")).to_have_text(re.compile("[2-9]"))
