"""POST to a webhook over real HTTP: the signed CloudEvent, what answers mean, and which addresses are never reached."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cloudevents.v1.http import from_http
from standardwebhooks import Webhook, WebhookVerificationError

from godwit.dispatch.channels.webhook import http
from godwit.dispatch.channels.webhook.targets import PrivateTarget, check_url, may_reach
from godwit.dispatch.model import Result
from tests.dispatch.conftest import Running, running

DEADLINE_S = 60
LOOPBACK = {"dispatch": {"private_targets": ["127.0.0.0/8"]}, "dispatch_limits": {"sweep_ms": 100}}
HI = {"to": {"receiver": "ann"}, "content": {"title": "hi"}}


@asynccontextmanager
async def endpoint(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """A real receiver; its URL."""
    app = web.Application()
    app.router.add_route("*", "/hook", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    finally:
        await runner.cleanup()


async def put_webhook(both: Running, url: str) -> str:
    """Receiver ann with a webhook; its secret."""
    await both.api("PUT", "/v1/receivers/ann", {})
    status, answer = await both.api("PUT", "/v1/receivers/ann/addresses/hook", {"channel": "webhook", "value": url})
    assert status == 200, answer
    return str(answer["secret"])


async def wait_for_state(both: Running, name: str, *states: str) -> dict[str, Any]:
    """The webhook's delivery once it is in one of the states."""
    while True:
        _, answer = await both.api("GET", f"/v1/notifications/{name}/deliveries")
        for row in answer["deliveries"]:
            if row["channel"] == "webhook" and row["state"] in states:
                return dict(row)


async def test_a_webhook_is_a_signed_event_and_is_counted(tmp_path: Path, runtime: Path) -> None:
    taken: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        taken.put_nowait(({name.lower(): value for name, value in request.headers.items()}, await request.read()))
        return web.Response(status=204)

    async with running(tmp_path, LOOPBACK) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        secret = await put_webhook(both, url)
        assert (await both.api("PUT", "/v1/notifications/n1", HI))[0] == 202
        headers, body = await taken.get()
        event = json.loads(body)
        assert (event["specversion"], event["type"], event["subject"]) == ("1.0", "godwit.notification", "ann")
        assert event["data"] == {"notification": "n1", "content": {"title": "hi"}} and "possibleduplicate" not in event
        assert Webhook(secret).verify(body, headers) == event
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(body.replace(b"hi", b"ho"), headers)
        read = from_http(headers, body)
        assert (read["specversion"], read["source"], read.data) == ("1.0", "/godwit/default", event["data"])
        assert headers["webhook-id"] == event["id"]
        row = await wait_for_state(both, "n1", "sent")
        assert (row["attempt"], row["possible_duplicate"], row["ref"]) == (1, False, "HTTP 204")
        _, answer = await both.api("GET", "/v1/notifications/n1")
        assert answer["counts"] == {"inbox": {"sent": 1}, "webhook": {"sent": 1}} and answer["state"] == "settled"


async def test_a_database_that_begins_anew_repeats_no_id(tmp_path: Path, runtime: Path) -> None:
    """Receivers drop what comes twice by its id, and numbers begin at 1 again: with a new database, or a copy put back."""
    taken: asyncio.Queue[str] = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        taken.put_nowait(request.headers["webhook-id"])
        return web.Response(status=204)

    async with endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        seen = []
        for folder in ("first", "second"):
            async with running(tmp_path / folder, LOOPBACK) as both:
                await put_webhook(both, url)
                await both.api("PUT", "/v1/notifications/n1", HI)
                seen.append(await taken.get())
                row = await wait_for_state(both, "n1", "sent")
                assert row["id"] == seen[-1]
        assert len(set(seen)) == 2


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        (500, "deferred", "temporary"),
        (410, "failed", "address"),
        (400, "failed", "content"),
    ],
)
async def test_what_an_answer_means(tmp_path: Path, runtime: Path, status: int, state: str, reason: str) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Retry-After": "600"})

    async with running(tmp_path, LOOPBACK) as both, endpoint(refuse) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "n1", state)
        assert (row["reason"], row["attempt"]) == (reason, 1)
        if reason == "address":
            _, answer = await both.api("GET", "/v1/receivers/ann")
            assert answer["addresses"][0]["state"] == "invalid"


async def test_no_answer_is_in_doubt_and_the_next_attempt_says_so(tmp_path: Path, runtime: Path) -> None:
    bodies: list[dict[str, Any]] = []

    async def hang_once(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        if len(bodies) == 1:
            assert request.transport is not None
            request.transport.close()
        return web.Response()

    async with running(tmp_path, LOOPBACK) as both, endpoint(hang_once) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "n1", "sent")
        assert row["possible_duplicate"] and row["attempt"] == 2
        assert [body.get("possibleduplicate", False) for body in bodies] == [False, True]
        assert bodies[0]["id"] == bodies[1]["id"]


async def test_a_redirect_is_not_followed(tmp_path: Path, runtime: Path) -> None:
    asked: list[str] = []

    async def redirect(request: web.Request) -> web.Response:
        asked.append(request.method)
        return web.Response(status=302, headers={"Location": "http://169.254.169.254/latest/meta-data"})

    async with running(tmp_path, LOOPBACK) as both, endpoint(redirect) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        await both.api("PUT", "/v1/notifications/n1", HI)
        assert (await wait_for_state(both, "n1", "failed"))["ref"] == "HTTP 302" and asked == ["POST"]


@pytest.mark.parametrize(
    "value",
    [
        "http://127.0.0.1/x",
        "http://127.0.0.1./x",
        "http://[::127.0.0.1]/x",
        "http://[::ffff:0:127.0.0.1]/x",
        "http://[64:ff9b:1::7f00:1]/x",
        "http://[fec0::1]/x",
        "http://192.0.0.8/x",
        "http://2130706433/x",
        "http://0x7f.1/x",
        "http://0177.0.0.1/x",
        "http://10.1/x",
        "http://[::1]/x",
        "http://[::ffff:10.0.0.1]/x",
        "http://[64:ff9b::a00:1]/x",
        "http://169.254.169.254/latest",
        "ftp://example.com",
        "http://user:secret@example.com/",
        "http://",
        "https://example.com:0/x",
        "nonsense",
    ],
)
async def test_an_address_that_may_not_be_reached_is_refused_at_registration(dispatch: Running, value: str) -> None:
    await dispatch.api("PUT", "/v1/receivers/ann", {})
    body = {"channel": "webhook", "value": value}
    status, answer = await dispatch.api("PUT", "/v1/receivers/ann/addresses/hook", body)
    assert (status, answer["code"]) == (422, 4313)


@pytest.mark.parametrize("host", ["localhost"])
async def test_a_name_of_a_private_address_is_never_reached(tmp_path: Path, runtime: Path, host: str) -> None:
    asked: list[str] = []

    async def take(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    settings = {"dispatch_limits": {"sweep_ms": 100}}
    async with running(tmp_path, settings) as both, endpoint(take) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url.replace("127.0.0.1", host))
        await both.api("PUT", "/v1/notifications/n1", HI)
        row = await wait_for_state(both, "n1", "failed", "deferred")
        assert not asked and row["state"] == "failed", row


def test_private_targets_hold_networks_and_ports() -> None:
    one = (PrivateTarget.parse("10.0.0.0/8"), PrivateTarget.parse("127.0.0.1:9000"), PrivateTarget.parse("[::1]:9000"))
    reached = {"10.1.2.3": 80, "127.0.0.1": 9000, "::1": 9000, "8.8.8.8": 443, "::ffff:10.0.0.1": 80}
    assert all(may_reach(ip_address(host), port, one) for host, port in reached.items())
    refused = {"127.0.0.1": 80, "::1": 80, "192.168.0.1": 80, "224.0.0.1": 80, "0.0.0.0": 80, "2002:7f00:1::": 80}
    assert not any(may_reach(ip_address(host), port, one) for host, port in refused.items())
    assert not may_reach(ip_address("169.254.169.254"), 80, (PrivateTarget.parse("0.0.0.0/0"),))
    assert check_url("https://example.com/hook", ()) == ""


def test_a_host_that_no_name_can_be_is_refused() -> None:
    for host in ("a..b", ".a.example", f"{'x' * 64}.example"):
        assert check_url(f"https://{host}/", ()), host
    for host in ("a.example", "a.example.", f"{'x' * 63}.example", "[2606:4700::1]"):
        assert not check_url(f"https://{host}/", ()), host


@pytest.mark.parametrize("host", ["a..b", f"{'x' * 64}.example"])
async def test_a_post_to_a_host_that_no_name_can_be_raises_nothing(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "check_url", lambda url, private: "")  # an address that was stored before it was checked
    poster = http.HttpPoster((), sends_max=1, timeout_ms=1_000)
    try:
        assert (await poster.post(f"https://{host}/", b"{}", {}))[0] is Result.CONTENT
    finally:
        await poster.close()


async def test_a_dead_letter_is_listed_and_sent_again_on_replay(tmp_path: Path, runtime: Path) -> None:
    statuses = [400]

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=statuses[-1])

    async with running(tmp_path, LOOPBACK) as both, endpoint(refuse) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "n1", "failed")
        _, answer = await both.api("GET", "/v1/dead-letters?reason=content")
        assert [(one["notification"], one["receiver"], one["ref"]) for one in answer["dead_letters"]] == [
            ("n1", "ann", "HTTP 400")
        ]
        assert (await both.api("GET", "/v1/dead-letters?reason=exhausted"))[1]["dead_letters"] == []
        statuses.append(200)
        assert await both.api("POST", "/v1/dead-letters/replay", {"notification": "n1"}) == (202, {"replayed": 1})
        row = await wait_for_state(both, "n1", "sent")
        assert (row["attempt"], row["possible_duplicate"]) == (2, False)
        assert (await both.api("GET", "/v1/dead-letters"))[1]["dead_letters"] == []


async def test_a_cancelled_notification_is_not_tried_again(tmp_path: Path, runtime: Path) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=500, headers={"Retry-After": "1"})

    async with running(tmp_path, LOOPBACK) as both, endpoint(refuse) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        await both.api("PUT", "/v1/notifications/n1", HI)
        await wait_for_state(both, "n1", "deferred")
        status, answer = await both.api("POST", "/v1/notifications/n1/cancel")
        assert (status, answer) == (200, {"id": "n1", "state": "cancelled", "cancelled": 1})
        _, answer = await both.api("GET", "/v1/notifications/n1")
        assert answer["state"] == "cancelled" and answer["counts"]["webhook"] == {"cancelled": 1}
        assert (await both.api("POST", "/v1/notifications/none/cancel"))[1]["code"] == 4305


async def test_what_is_being_sent_when_its_notification_is_cancelled_is_not_sent_again(
    tmp_path: Path, runtime: Path
) -> None:
    asked, answers = asyncio.Event(), asyncio.Event()
    requests = 0

    async def refuse(request: web.Request) -> web.Response:
        nonlocal requests
        requests += 1
        asked.set()
        await answers.wait()
        return web.Response(status=500, headers={"Retry-After": "1"})

    async with running(tmp_path, LOOPBACK) as both, endpoint(refuse) as url, asyncio.timeout(DEADLINE_S):
        await put_webhook(both, url)
        await both.api("PUT", "/v1/notifications/n1", HI)
        await asked.wait()
        assert (await both.api("POST", "/v1/notifications/n1/cancel"))[0] == 200
        answers.set()
        await wait_for_state(both, "n1", "cancelled")
        assert requests == 1


async def test_a_tenant_whose_endpoint_hangs_does_not_hold_another_up(tmp_path: Path, runtime: Path) -> None:
    released, quick = asyncio.Event(), asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    async def take(request: web.Request) -> web.Response:
        quick.set()
        return web.Response()

    limits = {"sweep_ms": 100, "page_receivers_max": 4, "webhook_sends_max": 8, "webhook_sends_per_host_max": 2}
    settings = {"dispatch": LOOPBACK["dispatch"], "dispatch_limits": limits}
    async with (
        running(tmp_path, settings) as both,
        endpoint(hang) as slow_url,
        endpoint(take) as url,
        asyncio.timeout(DEADLINE_S),
    ):
        await both.api("PUT", "/v1/tenants/slow")
        _, answer = await both.api("POST", "/v1/keys", {"tenant": "slow", "scopes": ["admin"]})
        lines = b"\n".join(
            json.dumps(
                {"id": f"r{number}", "addresses": [{"id": "h", "channel": "webhook", "value": slow_url}]}
            ).encode()
            for number in range(50)
        )
        await both.api("POST", "/v1/receivers/import", lines, key=answer["key"])
        names = [f"r{number}" for number in range(50)]
        many = {"to": {"receivers": names}, "content": {"title": "x"}}
        assert (await both.api("PUT", "/v1/notifications/n1", many, key=answer["key"]))[0] == 202
        await put_webhook(both, url)
        await both.api("PUT", "/v1/notifications/n1", HI)
        await quick.wait()
        released.set()
