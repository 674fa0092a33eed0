"""The console of dispatch in a real Chromium: send with a preview, watch, look at a receiver, replay failures, templates, webhooks.

axe-core finds no violation in light, dark and on a phone. With KEEP_SCREENSHOT set the pictures in docs/notifications are taken again.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.axe import find_faults
from tests.console.conftest import browser, chromium, page
from tests.dispatch.conftest import Running, running
from tests.dispatch.email.test_providers import Relay, listening, make_body
from tests.dispatch.inbox.test_lists import send

__all__ = ["browser", "chromium", "page"]  # the browser is the console tests' own

DEADLINE_S = 120
SECRET = "never-shown"
LOOKS = {"light": ("light", 1280), "dark": ("dark", 1280), "phone": ("light", 390)}
PAGES = (
    "notifications",
    "notification?id=hello",
    "send",
    "receivers",
    "receiver?id=ann",
    "failures",
    "templates",
    "webhooks",
    "providers",
)
KEPT = {
    "light": ("notifications", "receiver", "send"),
    "dark": ("notifications", "failures"),
    "phone": ("notifications",),
}


@pytest.fixture
def runtime_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


async def open_console(page: Page, both: Running, place: str) -> None:
    """As an operator does, by keyboard."""
    await page.goto(f"{both.url}/console/#/{place}")
    await page.get_by_role("button", name="API key").press("Enter")
    await page.get_by_label("Key", exact=True).fill(both.key)
    await page.keyboard.press("Enter")
    await expect(page.locator("#condition")).to_have_text("ready")


async def fill(both: Running) -> None:
    """Something of everything."""
    await both.api("PUT", "/v1/categories/news", {})
    await both.api("PUT", "/v1/templates/welcome", {"locales": {"default": {"title": "Hi {{ name }}"}}})
    await both.api("PUT", "/v1/webhooks/ops", {"url": "https://hooks.example.com/", "types": ["delivery.failed"]})
    west = {"relay": "127.0.0.1:9", "security": "none", "sender": "news@shop.example", "user": "me", "password": SECRET}
    given = {"priority": 1, "weight": 3, "rate_per_s": 1_050, "tenants": ["default"]}
    assert (await both.api("PUT", "/v1/providers/west", {**west, **given}))[0] == 201
    await send(both, "first", "hello")
    for number in range(3):
        body = {
            "to": {"address": {"channel": "webhook", "value": "https://content.sandbox.invalid/"}},
            "content": {"title": "Refused"},
        }
        await both.api("PUT", f"/v1/notifications/refused-{number}", body)
    while len((await both.api("GET", "/v1/dead-letters"))[1]["dead_letters"]) < 3:
        pass  # each answer is a turn of the loop


async def test_an_operator_sends_watches_and_repairs(page: Page, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder) as both:
        await fill(both)
        await open_console(page, both, "send")
        await page.get_by_label("Name").fill("ann")
        await page.get_by_label("Template, instead of title and text").fill("welcome")
        await page.get_by_label("Its data, as JSON").fill('{"name": "Ann"}')
        await page.get_by_role("button", name="Preview").click()
        await expect(page.get_by_role("heading", name="Hi Ann")).to_be_visible()
        await page.get_by_role("button", name="Send", exact=True).click()
        await page.get_by_role("link", name="Watch its deliveries").click()
        await expect(page.get_by_role("table", name="Each delivery")).to_contain_text("sent")
        token = await both.make_token("ann")
        head = (await both.api("GET", "/v1/inbox/counts", key=token))[1]["head"]
        await both.api("POST", "/v1/inbox/marks", {"mark": "read", "up_to": head}, key=token)
        await expect(page.get_by_role("table", name="Counts by state")).to_contain_text("delivered")  # without a reload
        await page.get_by_role("link", name="Receivers").click()
        await page.get_by_label("Name begins with").fill("an")
        await page.get_by_role("link", name="ann", exact=True).click()
        await expect(page.get_by_role("table", name="Items of the inbox")).to_contain_text("Hi Ann")
        await page.get_by_role("checkbox", name="news by email").uncheck()
        await expect(page.get_by_text("Preferences are stored.")).to_be_visible()
        assert (await both.api("GET", "/v1/receivers/ann/preferences"))[1]["categories"] == {"news": {"email": False}}
        await page.get_by_role("link", name="Failures").click()
        await page.get_by_role("button", name="Send again").press("Enter")
        await page.get_by_role("dialog").get_by_role("button", name="Send again").click()
        await expect(page.get_by_text("3 deliveries are queued again.")).to_be_visible()
        await page.get_by_role("link", name="Templates").click()
        await page.get_by_role("button", name="Open welcome").click()
        await expect(page.get_by_text("Version 1 of welcome")).to_be_visible()
        await page.get_by_label("Locales, as JSON with Liquid").fill('{"default": {"title": "Hello {{ name }}"}}')
        await page.get_by_role("button", name="Store a version").click()
        await expect(page.get_by_text("Version 2 is stored.")).to_be_visible()
        await page.get_by_role("link", name="Webhooks").click()
        await page.get_by_role("button", name="Delete ops").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("No event webhooks.")).to_be_visible()


async def test_providers_show_their_state_and_never_their_secrets(page: Page, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder, {"dispatch_limits": {"sweep_ms": 100}}) as both:
        await fill(both)
        await open_console(page, both, "providers")
        table = page.get_by_role("table", name="Each provider of e-mail")
        await expect(table).to_contain_text("working")
        await expect(table).to_contain_text("1,050")
        await expect(table).to_contain_text("with a password")
        address = {"channel": "email", "value": "x@mail.example"}
        for number in range(10):  # nothing listens there: after ten failures it rests
            note = {"to": {"address": address}, "content": {"title": "x"}}
            await both.api("PUT", f"/v1/notifications/m{number}", note)
        await expect(table).to_contain_text("resting for", timeout=60_000)  # without a reload
        assert SECRET not in await page.content()
        await page.get_by_role("button", name="Delete west").press("Enter")
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("No providers.")).to_be_visible()
        other = (await both.api("POST", "/v1/keys", {"scopes": ["read"]}))[1]["key"]
        await page.get_by_role("button", name="API key").click()
        await page.get_by_label("Key", exact=True).fill(other)
        await page.keyboard.press("Enter")
        await expect(page.locator("p.outcome")).to_contain_text("operator")


async def test_a_provider_is_stored_changed_and_tested_with_the_form(page: Page, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), listening(Relay()) as relay, running(runtime_folder) as both:
        await open_console(page, both, "providers")
        host = make_body(relay)["relay"]
        for label, value in (("Name", "east"), ("Relay", host), ("From", "news@shop.example"), ("Weight", "3")):
            await page.get_by_label(label, exact=True).fill(value)
        await page.get_by_role("combobox", name="Security").select_option("none")
        await page.get_by_role("button", name="Store").click()
        await expect(page.get_by_text("Stored.")).to_be_visible()
        await both.api("PUT", "/v1/providers/east", make_body(relay, user="me", password=SECRET, weight=3, sends_max=7))
        table = page.get_by_role("table", name="Each provider of e-mail")
        await expect(table).to_contain_text("with a password", timeout=60_000)
        await page.get_by_role("button", name="Edit east").click()
        await expect(page.get_by_label("User", exact=True)).to_have_value("me")
        assert await page.get_by_label("Password").input_value() == "" and SECRET not in await page.content()
        await page.get_by_label("Priority", exact=True).fill("4")
        await page.get_by_role("button", name="Store").press("Enter")
        while (stored := (await both.api("GET", "/v1/providers/east"))[1])["priority"] != 4:
            pass
        assert (stored["sends_max"], stored["weight"], stored["has_password"]) == (7, 3, True), (
            "what the form lacks stays"
        )
        await both.api("PUT", "/v1/providers/east", make_body(relay))
        await page.get_by_role("button", name="Test east").click()
        await page.get_by_label("To", exact=True).fill("ann@mail.example")
        await page.get_by_role("dialog").get_by_role("button", name="Send").click()
        await expect(page.get_by_text("Accepted as")).to_be_visible()
        while not relay.taken:
            await both.api("GET", "/v1/providers")


async def test_a_wrong_key_and_a_refusal_are_said(page: Page, runtime_folder: Path) -> None:
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder) as both:
        await page.goto(f"{both.url}/console/")
        await expect(page.get_by_text("An API key is required.")).to_be_visible()
        await page.get_by_role("button", name="API key").click()
        await page.get_by_label("Key", exact=True).fill("gw_wrong")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("The API key is not valid.")).to_be_visible()
        await page.get_by_role("button", name="API key").click()
        await page.get_by_label("Key", exact=True).fill(both.key)
        await page.keyboard.press("Enter")
        await page.get_by_role("link", name="Send").click()
        await page.get_by_label("Name").fill("a/b")
        await page.get_by_role("button", name="Send", exact=True).click()
        await expect(page.locator("p.outcome")).to_contain_text("RequestInvalid")


@pytest.mark.parametrize(
    "look", [pytest.param(look, marks=[] if look == "light" else pytest.mark.long) for look in LOOKS]
)
async def test_axe_finds_no_fault_on_any_page(page: Page, root: Path, runtime_folder: Path, look: str) -> None:
    scheme, width = LOOKS[look]
    folder = root / "docs/notifications" if os.environ.get("KEEP_SCREENSHOT") else runtime_folder
    await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # its values are not typed in LOOKS
    await page.set_viewport_size({"width": width, "height": 860})
    async with asyncio.timeout(DEADLINE_S), running(runtime_folder) as both:
        await fill(both)
        await open_console(page, both, "notifications")
        for place in PAGES:
            name = place.partition("?")[0]
            await page.goto(f"{both.url}/console/#/{place}")
            await expect(page.locator("h1")).to_be_visible()
            if name not in ("send",):
                await expect(page.locator("td, .empty").first).to_be_visible()
            assert not await find_faults(page, root), (look, place)
            if name in KEPT[look]:
                await page.screenshot(path=folder / f"{name}-{look}.png")
