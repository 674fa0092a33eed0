"""What a user of `<godwit-inbox>` meets in a real Chromium: logout, preferences that are saved slowly, what counts as seen, errors."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from playwright.async_api import Page, expect

from tests.browser.conftest import Serve
from tests.browser.held import hold_requests
from tests.dispatch.inbox.test_element import (
    DEADLINE_S,
    INBOX,
    browser,
    chromium,
    open_shop,
    open_tab,
    package,
    page,
    rows,
    runtime_folder,
    serve,
)
from tests.dispatch.inbox.test_lists import send, wait_for

__all__ = ["browser", "chromium", "package", "page", "runtime_folder", "serve"]  # the fixtures that these tests share


async def test_logout_removes_what_the_last_user_saw(page: Page, serve: Serve, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), open_shop(serve) as shop, shop.running(runtime_folder) as both:
        await send(both, "a", "b")
        await open_tab(page, shop.address, await both.make_token("ann"))
        await page.evaluate(
            f"() => {INBOX}.addEventListener('godwit-change', (e) => (window.unread = e.detail.unread))"
        )
        await page.get_by_role("button", name="Notifications, 2 unread").click()
        await expect(rows(page)).to_have_count(2)
        await page.get_by_role("button", name="Preferences").click()
        await expect(page.get_by_role("checkbox")).to_have_count(6)
        await page.evaluate(f"() => {{ {INBOX}.token = null }}")
        await expect(page.get_by_role("button", name="Notifications, none unread")).to_be_visible()
        await expect(page.get_by_text("No notifications.")).to_be_visible()
        await expect(rows(page)).to_have_count(0)
        await expect(page.locator("godwit-inbox input")).to_have_count(0)
        assert await page.evaluate("() => window.unread") == 0


async def test_only_what_is_shown_was_seen(page: Page, serve: Serve, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), open_shop(serve) as shop, shop.running(runtime_folder) as both:
        await send(both, *(f"n{number}" for number in range(55)))
        await open_tab(page, shop.address, await both.make_token("ann"))
        await page.get_by_role("button", name="Notifications, 55 unread").click()
        await page.wait_for_function(f"() => {INBOX}.inbox.unseen === 5")  # those that were not loaded
        await page.get_by_role("button", name="Preferences").click()
        await expect(page.get_by_role("checkbox")).to_have_count(6)
        await send(both, "behind")
        await page.wait_for_function(f"() => {INBOX}.inbox.items[0].id === 'behind' && {INBOX}.inbox.unseen === 6")
        await page.get_by_role("button", name="Archived", exact=True).wait_for(state="hidden")
        await page.get_by_role("button", name="Back").click()
        await page.wait_for_function(f"() => {INBOX}.inbox.unseen === 5")
        assert await page.evaluate(f"() => {INBOX}.inbox.items[0].flags") == ["seen"]


async def test_delete_archives_and_does_not_restore(page: Page, serve: Serve, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), open_shop(serve) as shop, shop.running(runtime_folder) as both:
        await send(both, "a", "b")
        await open_tab(page, shop.address, await both.make_token("ann"))
        await page.get_by_role("button", name="Notifications, 2 unread").click()
        for count in (1, 0):
            await rows(page).first.locator(".main").focus()
            await page.keyboard.press("Delete")
            await expect(rows(page)).to_have_count(count)
        await page.get_by_role("button", name="Archived", exact=True).click()
        await expect(rows(page)).to_have_count(2)
        marks: list[str | None] = []
        page.on("request", lambda request: marks.append(request.post_data))
        await rows(page).first.locator(".main").focus()
        await page.keyboard.press("Delete")
        await page.keyboard.press("Enter")  # opens the item: its mark is the first request
        await page.wait_for_function(f"() => {INBOX}.inbox.items[0].flags.includes('read')")
        assert [json.loads(mark)["mark"] for mark in marks if mark] == ["read"]
        await expect(rows(page)).to_have_count(2)


async def test_preferences_are_saved_one_at_a_time_and_a_box_returns_when_that_fails(
    page: Page, serve: Serve, runtime_folder: Path
) -> None:
    async with asyncio.timeout(DEADLINE_S), open_shop(serve) as shop, shop.running(runtime_folder) as both:
        await both.api("PUT", "/v1/receivers/ann", {})
        await open_tab(page, shop.address, await both.make_token("ann"))
        await page.get_by_role("button", name="Notifications").click()
        await page.get_by_role("button", name="Preferences").click()
        box = page.get_by_role("checkbox")
        held = await hold_requests(page, "**/v1/inbox/preferences", "PUT")
        for name in ("Inbox", "E-mail", "Webhook"):
            await page.get_by_role("checkbox", name=f"News and offers: {name}").uncheck()
        first = await held.get()
        assert held.empty(), "the second waits for the first"
        await first.continue_()
        second = await held.get()
        news = {"inbox": False, "email": False, "webhook": False}
        assert json.loads(second.request.post_data or "") == {"categories": {"news": news}}
        await page.get_by_role("checkbox", name="Everything: Inbox").uncheck()
        await second.continue_()
        await (await held.get()).abort()
        await expect(page.get_by_role("checkbox", name="Everything: Inbox")).to_be_checked()
        await expect(page.get_by_text("The change could not be saved.")).to_be_visible()
        await expect(box.nth(3)).not_to_be_checked()
        assert (await both.api("GET", "/v1/receivers/ann/preferences"))[1]["categories"] == {"news": news}


async def test_errors_are_events_and_words_say_whether_it_is_tried_again(
    page: Page, serve: Serve, runtime_folder: Path
) -> None:
    async with asyncio.timeout(DEADLINE_S), open_shop(serve) as shop, shop.running(runtime_folder) as both:
        await send(both, "a")
        await page.route("**/v1/inbox?**", lambda route: route.fulfill(status=503, body="busy"))
        await open_tab(page, shop.address, await both.make_token("ann"))
        await page.evaluate(f"() => {INBOX}.toggle()")
        await expect(page.get_by_text("Notifications cannot be loaded right now. Trying again.")).to_be_visible()
        await page.unroute_all()
        await expect(rows(page)).to_have_count(1)
        await page.evaluate(
            f"() => {{ {INBOX}.addEventListener('godwit-error', (event) => (window.fault = event.detail.error.message)); "
            f"{INBOX}.setAttribute('node', 'nothing like a url'); }}"
        )
        await page.wait_for_function("() => window.fault !== undefined")
        await expect(page.get_by_text("Notifications cannot be loaded.", exact=True)).to_be_visible()
        await expect(rows(page)).to_have_count(0)


async def test_properties_that_were_set_before_the_element_was_defined_hold(
    page: Page, serve: Serve, runtime_folder: Path
) -> None:
    async with asyncio.timeout(DEADLINE_S), open_shop(serve) as shop, shop.running(runtime_folder) as both:
        await send(both, "a")
        await open_tab(page, shop.address, "")
        early = """(token) => {
          const shown = document.querySelector("godwit-inbox");
          const early = document.implementation.createHTMLDocument().createElement("godwit-inbox"); // not defined there
          for (const { name, value } of shown.attributes) early.setAttribute(name, value);
          Object.assign(early, { token, words: { title: "Post" } });
          shown.replaceWith(early);
        }"""
        await page.evaluate(early, await both.make_token("ann"))
        await page.get_by_role("button", name="Notifications, 1 unread").click()
        await expect(page.get_by_role("dialog", name="Post")).to_be_visible()
        assert await page.evaluate(f"() => Object.keys({INBOX})") == []


async def test_an_action_with_any_id_keeps_the_focus_when_its_row_changes(
    page: Page, serve: Serve, runtime_folder: Path
) -> None:
    async with asyncio.timeout(DEADLINE_S), open_shop(serve) as shop, shop.running(runtime_folder) as both:
        content = {"title": "x", "actions": [{"id": '"] \\', "label": "Odd"}]}
        await both.api("PUT", "/v1/notifications/odd", {"to": {"receiver": {"id": "ann"}}, "content": content})
        await wait_for(both, "odd")
        await open_tab(page, shop.address, await both.make_token("ann"))
        await page.get_by_role("button", name="Notifications, 1 unread").click()
        odd = page.get_by_role("button", name="Odd")
        await odd.focus()
        await page.keyboard.press("Enter")  # marks it as read, so that its row is drawn again
        await expect(page.get_by_role("button", name="Mark as unread")).to_be_visible()
        await expect(odd).to_be_focused()


async def test_the_inbox_of_the_next_user_is_seen_while_a_mark_of_the_last_is_under_way(
    page: Page, serve: Serve, runtime_folder: Path
) -> None:
    async with asyncio.timeout(DEADLINE_S), open_shop(serve) as shop, shop.running(runtime_folder) as both:
        await send(both, "a")
        body = {"to": {"receiver": {"id": "bob"}}, "content": {"title": "b"}}
        await both.api("PUT", "/v1/notifications/b", body)
        await wait_for(both, "b")
        await open_tab(page, shop.address, await both.make_token("ann"))
        await expect(page.get_by_role("button", name="Notifications, 1 unread")).to_be_visible()
        await page.evaluate(STUCK_MARKS)
        await page.evaluate(f"() => {INBOX}.toggle()")
        await page.wait_for_function("() => window.stuck === 1")
        await page.evaluate(f"(token) => {{ {INBOX}.token = token }}", await both.make_token("bob"))
        await page.wait_for_function(f"() => {INBOX}.inbox.items[0]?.id === 'b' && {INBOX}.inbox.unseen === 0")


STUCK_MARKS = """() => {
  const fetched = window.fetch;
  window.stuck = 0;
  window.fetch = (url, options) => {
    const isFirst = options.method === "POST" && String(options.body).includes("seen") && window.stuck === 0;
    if (!isFirst) return fetched(url, options);
    window.stuck += 1;
    return new Promise(() => {}); // an answer that comes late, whatever ends
  };
}"""
