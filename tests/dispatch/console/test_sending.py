"""What an operator does in a real Chromium is done once and to what was meant: sends, replays, webhooks, preferences, scopes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from playwright.async_api import Page, Route, expect

from tests.browser.held import hold_requests
from tests.dispatch.conftest import Running, running
from tests.dispatch.console.test_pages import DEADLINE_S, browser, chromium, open_console, page, runtime_folder
from tests.dispatch.inbox.test_lists import send

__all__ = ["browser", "chromium", "page", "runtime_folder"]  # the fixtures that these tests share


async def put_dead(both: Running) -> None:
    """One refused delivery, and one that is held because it may have arrived."""
    for name, more in (("content", {}), ("doubt", {"if_in_doubt": "hold"})):
        to = {"address": {"channel": "webhook", "value": f"https://{name}.sandbox.invalid/"}}
        status, answer = await both.api(
            "PUT", f"/v1/notifications/{name}", {"to": to, "content": {"title": "x"}, **more}
        )
        assert status == 202, answer
    while len((await both.api("GET", "/v1/dead-letters"))[1]["dead_letters"]) < 2:
        pass  # each answer is a turn of the loop


async def test_a_form_is_sent_once_however_often_it_is_tried(page: Page, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder) as both:
        await open_console(page, both, "send")
        held: asyncio.Queue[Route] = asyncio.Queue()
        await page.route("**/v1/notifications/*", lambda route: held.put(route))
        await page.get_by_label("Name").fill("ann")
        await page.get_by_label("Title", exact=True).fill("once")
        button = page.get_by_role("button", name="Send", exact=True)
        await button.dblclick()
        lost = await held.get()
        await expect(button).to_be_disabled()
        await lost.fetch()  # dispatch accepted it, and its answer is lost
        await lost.abort()
        assert held.empty()
        await button.click()
        again = await held.get()
        assert again.request.url == lost.request.url
        await again.continue_()
        await expect(page.get_by_role("link", name="Watch its deliveries")).to_be_visible()
        await button.click()  # the next one, on purpose
        await (await held.get()).continue_()
        await expect(button).to_be_enabled()
        assert len((await both.api("GET", "/v1/notifications"))[1]["notifications"]) == 2
        await page.get_by_label("Title", exact=True).fill("other")
        await button.click()
        other = await held.get()
        await other.abort()
        await page.get_by_label("Title", exact=True).fill("edited")
        await button.click()
        assert (await held.get()).request.url != other.request.url


async def test_a_row_is_replayed_alone_and_what_is_in_doubt_only_when_asked(page: Page, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder) as both:
        await put_dead(both)
        for choice in ({"channel": "email"}, {"reason": ""}, {"reason": "doubt"}):
            assert await both.api("POST", "/v1/dead-letters/replay", choice) == (202, {"replayed": 0}), choice
        assert (await both.api("POST", "/v1/dead-letters/replay", {"state": "odd"}))[0] == 422
        await open_console(page, both, "failures")
        for state, words in (("unknown", "they may arrive twice"), ("failed", "Channel webhook")):
            await page.get_by_role("button", name=f"Send again webhook {state}").click()
            await expect(page.get_by_role("dialog")).to_contain_text(words)
            async with page.expect_response("**/v1/dead-letters/replay") as answered:
                await page.get_by_role("dialog").get_by_role("button", name="Send again").click()
            answer = await answered.value
            assert json.loads(answer.request.post_data or "")["state"] == state
            assert await answer.json() == {"replayed": 1}


async def test_failures_are_listed_each_second_and_counted_more_rarely(page: Page, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder) as both:
        await put_dead(both)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
        await open_console(page, both, "failures")
        for _ in range(3):
            async with page.expect_response("**/v1/dead-letters"):
                pass
        assert "dead-letters dead-letters" in " ".join(asked) and "reasons" in asked


async def test_storing_a_webhook_keeps_its_detail(page: Page, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder) as both:
        url = "https://hooks.example.com/"
        await both.api("PUT", "/v1/webhooks/ops", {"url": url, "types": [], "detail": "deliveries"})
        await open_console(page, both, "webhooks")
        await page.get_by_label("Name").fill("ops")
        await page.get_by_label("Address").fill(url + "new")
        await page.get_by_role("button", name="Store").click()
        await expect(page.get_by_text("Stored.")).to_be_visible()
        [hook] = (await both.api("GET", "/v1/webhooks"))[1]["webhooks"]
        assert (hook["url"], hook["detail"]) == (url + "new", "deliveries")


async def test_a_key_that_reads_sees_addresses_and_asks_once_for_the_inbox(page: Page, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder) as both:
        await send(both, "a")
        hook = {"channel": "webhook", "value": "https://hooks.example.com/"}
        assert (await both.api("PUT", "/v1/receivers/ann/addresses/hook", hook))[0] == 200
        _, made = await both.api("POST", "/v1/keys", {"scopes": ["read"]})
        reader = Running(both.url, both.node_url, made["key"], both.http)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
        await open_console(page, reader, "receiver?id=ann")
        await expect(page.get_by_text("The inbox is not shown.")).to_be_visible()
        await expect(page.get_by_role("table", name="Each address")).to_contain_text("hooks.example.com")
        await expect(page.get_by_role("checkbox", name="everything by email")).to_be_visible()
        async with page.expect_request("**/v1/receivers/ann"):
            pass
        async with page.expect_request("**/v1/receivers/ann"):
            pass
        assert asked.count("token") == 1 and "categories" not in asked  # the preferences name them
        await page.goto(f"{both.url}/console/#/constructor")
        await expect(page.get_by_role("heading", name="Notifications", level=1)).to_be_visible()


async def test_preferences_are_stored_one_at_a_time_and_return_when_that_fails(
    page: Page, runtime_folder: Path
) -> None:
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder) as both:
        await send(both, "a")
        await open_console(page, both, "receiver?id=ann")
        held = await hold_requests(page, "**/preferences", "PUT")
        for channel in ("inbox", "webhook"):
            await page.get_by_role("checkbox", name=f"everything by {channel}").uncheck()
        first = await held.get()
        async with page.expect_response("**/v1/inbox?**"):
            pass  # a refresh does not set the boxes back
        assert held.empty()
        await first.continue_()
        second = await held.get()
        await second.continue_()
        await expect(page.get_by_text("Preferences are stored.")).to_be_visible()
        await page.get_by_role("checkbox", name="everything by email").uncheck()
        await (await held.get()).abort()
        await expect(page.get_by_role("checkbox", name="everything by email")).to_be_checked()
        for channel in ("inbox", "webhook"):
            await expect(page.get_by_role("checkbox", name=f"everything by {channel}")).not_to_be_checked()
        stored = (await both.api("GET", "/v1/receivers/ann/preferences"))[1]["categories"]
        assert stored == {"*": {"inbox": False, "webhook": False}}


async def test_all_deliveries_can_be_paged_through(page: Page, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder) as both:
        names = [f"r{number}" for number in range(501)]
        for name in names:
            await both.api("PUT", f"/v1/receivers/{name}", {})
        body = {"to": {"receivers": names}, "content": {"title": "many"}}
        status, answer = await both.api("PUT", "/v1/notifications/many", body)
        assert status == 202, answer
        await open_console(page, both, "notification?id=many")
        lines = page.get_by_role("table", name="Each delivery").locator("tbody tr")
        await page.get_by_role("button", name="Next").dblclick()  # one page: where the next begins is not known yet
        await expect(lines).to_have_count(1)
        await expect(page.get_by_text("page 2")).to_be_visible()
        await page.get_by_role("button", name="Back").click()
        await expect(lines).to_have_count(500)
