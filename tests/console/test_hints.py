"""Hints of the console: suggested corrections, reasons for disabled buttons, and states that are not errors."""

import re

from playwright.async_api import Page, expect

from godwit import testing
from godwit.client import Client
from godwit.engine import Draft
from tests.console.test_console import TOKEN, open_page


async def test_godwits_own_subjects_are_shown_where_they_are_asked_for(page: Page) -> None:
    async with testing.node() as node:
        node.node.engine.publish_many([Draft("/rooms/a", b"1"), Draft("/$node/it/x", b"1")])
        await open_page(page, node, "subjects?sort=subject&order=asc")
        rows = page.locator("#subjects tbody tr")
        await expect(rows).to_have_count(1)
        await page.get_by_label("Search").fill("x")
        await expect(rows).to_have_count(0)
        await page.get_by_label("also Godwit’s own").check()
        await expect(rows.first).to_contain_text("/$node/")
        await page.get_by_label("Search").fill("/$node/**")
        await page.get_by_label("also Godwit’s own").uncheck()
        await expect(rows.first).to_contain_text("/$node/")


async def test_a_wildcard_of_mqtt_gets_a_suggestion_that_can_be_pressed(page: Page) -> None:
    async with testing.node() as node, Client(node.url) as client:
        await client.publish("/rooms/a/b", 1)
        await open_page(page, node, "live?pattern=/rooms/%2B/%23")
        await page.get_by_role("button", name="/rooms/*/**").click()
        await expect(page.get_by_label("Pattern")).to_have_value("/rooms/*/**")
        await expect(page.locator(".hint")).to_be_hidden()
        for search in ("/rooms/%23", "rooms/%23"):
            await open_page(page, node, f"subjects?search={search}")
            await page.get_by_role("button", name="/rooms/**").click()
            await expect(page.locator("#subjects tbody tr")).to_have_count(1)
        await open_page(page, node, "live?pattern=rooms/%23")  # as it stands in MQTT, where no slash begins a topic
        await page.get_by_role("button", name="/rooms/**", exact=True).click()
        await expect(page.locator("#messages tbody tr")).to_have_count(1)


async def test_a_subject_that_nobody_published_on_says_so(page: Page) -> None:
    async with testing.node({"admin": {"token": TOKEN}}) as node, Client(node.url) as client:
        await open_page(page, node, "subject?name=/romms/hall")
        await expect(page.locator(".fault")).to_contain_text("The node has no messages on this subject")
        await expect(page.get_by_role("button", name="Purge")).to_be_disabled()
        await client.publish("/romms/hall", 1)
        await expect(page.locator(".fault")).to_have_text("")
        await expect(page.locator("#now")).to_contain_text(re.compile(r"In memory1 message(?!s)"))
        await expect(page.get_by_role("button", name="Purge")).to_be_enabled()


async def test_buttons_say_why_nothing_can_be_changed(page: Page) -> None:
    async with testing.node() as node, Client(node.url) as client:
        await client.publish("/a", 1)
        why = re.compile("set admin.token or admin.token_file")
        for place, name in (
            ("subject?name=/a", "Purge"),
            ("configuration", "Reload"),
            ("connections", "Disconnect"),
        ):
            await open_page(page, node, place)
            button = page.locator("main").get_by_role("button", name=name).first
            await expect(button).to_be_disabled()
            await expect(button).to_have_attribute("title", why)
        await expect(page.get_by_role("button", name="No admin token is set")).to_be_disabled()


async def test_a_connection_has_one_number_everywhere(page: Page) -> None:
    async with testing.node({"admin": {"token": TOKEN}}) as node, Client(node.url) as client:
        await client.connected()
        await open_page(page, node, "connections?search=godwit-python")
        link = page.locator("#connections tbody tr").get_by_role("link")
        number = await link.inner_text()
        assert re.fullmatch("[0-9a-f]{1,16}", number)
        await link.click()
        await expect(page).to_have_url(re.compile(f"id={number}$"))
        await expect(page.get_by_role("heading", level=1)).to_have_text(number)
        assert await page.evaluate(f"fetch('/v1/connections/{number}').then((answer) => answer.status)") == 200


async def test_old_messages_that_go_are_no_hit(page: Page) -> None:
    async with testing.node({"limits": {"log_messages_max": 5}}) as node:
        node.node.engine.publish_many([Draft("/a", b"1")] * 12)
        await open_page(page, node, "limits")
        cell = page.locator("#limits tbody tr", has_text="log_messages_max").locator("td").nth(5)
        await expect(cell).to_have_text("7 evicted")
        await expect(cell).not_to_have_class(re.compile("warn"))
