"""Bodies, API keys and long polls."""

from __future__ import annotations

import asyncio

import pytest

from godwit.dispatch.api.bodies import NotificationBody, PreferencesBody, read_body
from godwit.dispatch.api.keys import KeyRing, digest_key
from godwit.dispatch.api.rates import AcceptRates
from godwit.dispatch.api.waiters import Waiters
from godwit.dispatch.codes import DispatchCode
from godwit.dispatch.errors import RequestRefused

BODY = b'{"to": {"receiver": "ann"}, "content": {"title": "hi"}}'


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "JSON"),
        (b'{"to": 1, "to": 2}', "twice"),
        (b'{"to": NaN}', "NaN"),
        (b'{"to": "\\ud800"}', "surrogates"),
        (b"[" * 100_000, "JSON"),
        (b'{"content": {"data": ' + b'{"a":' * 40 + b"1" + b"}" * 40 + b"}}", "deeper"),
        (BODY[:-1] + b', "x": 1}', "unknown field"),
        (BODY.replace(b'"ann"', b'"../ann"').replace(b"..", b"/"), "expected a name of 1 to 128"),
        (BODY.replace(b'"ann"', b'"' + b"a" * 129 + b'"'), "length"),
        (BODY[:-1] + b', "expires_s": 0}', ">= 1"),
        (BODY[:-1] + b', "expires_s": 9223372036854775808}', "expires_s|int|<="),
    ],
)
def test_a_body_that_is_not_valid_is_refused(body: bytes, why: str) -> None:
    with pytest.raises(RequestRefused, match=why) as caught:
        read_body(body, NotificationBody)
    assert caught.value.code is DispatchCode.REQUEST_INVALID


def test_an_invalid_field_is_named_by_a_pointer() -> None:
    with pytest.raises(RequestRefused) as caught:
        read_body(b'{"to": {"receivers": ["a", ""]}, "content": {}}', NotificationBody)
    assert caught.value.pointer == "/to/receivers/1"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (BODY[:-1] + b', "priority": "urgent"}', "value 'urgent': expected bulk, high or normal"),
        (BODY[:-1] + b', "policy": {"first": ["sms"]}}', "'sms': expected email, inbox or webhook"),
        (BODY[:-1] + b', "policy": "some"}', "'some': expected all"),
        (BODY[:-1] + b', "color": 1}', "field `color`: expected to, content, override, .* or metadata"),
        (BODY.replace(b'"title"', b'"titel"'), "field `titel`: expected title, body, .* or version"),
        (BODY.replace(b'"ann"', b'{"id": "ann", "name": "x"}'), "field `name`: expected .*locale.*id"),
        (BODY[:-1] + b', "override": {"email": {"headers": {"Bcc": "x"}}}}', "expected X-…"),
        (BODY[:-1] + b', "category": "a/b"}', "expected a name of 1 to 128 printable characters without a slash"),
        (BODY[:-1] + b', "send_at": {"local": "tomorrow"}}', "expected a local time such as 2026-12-24T09:00"),
        (BODY[:-1] + b', "override": {"email": {"headers": {"Bcc": "x"}}}}', "expected X-…, List-Id"),
    ],
)
def test_a_refusal_names_what_is_expected(body: bytes, expected: str) -> None:
    with pytest.raises(RequestRefused, match=expected):
        read_body(body, NotificationBody)


def test_a_key_that_is_not_expected_is_named_by_its_object() -> None:
    with pytest.raises(RequestRefused, match="'sms': expected email, inbox, webhook or") as caught:
        read_body(b'{"categories": {"news": {"sms": false}}}', PreferencesBody)
    assert caught.value.pointer == "/categories"


def test_the_order_of_keys_makes_no_other_body() -> None:
    other = b'{ "content": {"title":"hi"}, "to": {"receiver":"ann"} }'
    assert read_body(BODY, NotificationBody)[1] == read_body(other, NotificationBody)[1]
    assert read_body(BODY, NotificationBody)[1] != read_body(BODY.replace(b"hi", b"ho"), NotificationBody)[1]


async def test_too_many_wrong_keys_bar_an_address_for_the_minute() -> None:
    now = 0
    known = {digest_key("right"): ("shop", "send", False)}

    async def find(digest: bytes) -> tuple[str, str, bool] | None:
        return known.get(digest)

    ring = KeyRing(find, 2, lambda: now)

    async def code_of(key: str, scope: str = "send", address: str = "a") -> DispatchCode | None:
        try:
            await ring.read_caller(f"Bearer {key}" if key else "", address, scope)
        except RequestRefused as refused:
            return refused.code
        return None

    assert [await code_of("right"), await code_of("")] == [None, DispatchCode.API_KEY_MISSING]
    assert await code_of("right", "admin") is DispatchCode.SCOPE_MISSING
    assert [await code_of("x"), await code_of("y")] == [DispatchCode.API_KEY_INVALID] * 2
    assert await code_of("right") is DispatchCode.ATTEMPTS_TOO_MANY
    assert await code_of("right", address="b") is None
    now = 60_000
    assert await code_of("right") is None


async def test_what_was_read_before_a_change_is_not_cached_after_it() -> None:
    """A key is deleted, and a quota is changed, while the store reads the old row for a request."""
    digest = digest_key("right")
    known, quotas = {digest: ("shop", "send", False)}, {"shop": 1_000}
    reads, is_changed = asyncio.Event(), asyncio.Event()

    async def find(digest: bytes) -> tuple[str, str, bool] | None:
        row = known.get(digest)
        reads.set()
        await is_changed.wait()
        return row

    async def read_rate(tenant: str) -> int:
        rate = quotas[tenant]
        reads.set()
        await is_changed.wait()
        return rate

    ring, rates = KeyRing(find, 9, lambda: 0), AcceptRates(read_rate, lambda: 0)
    first = asyncio.create_task(ring.read_caller("Bearer right", "a", "send"))
    await reads.wait()
    known.clear()
    ring.forget(digest)
    is_changed.set()
    await first
    with pytest.raises(RequestRefused):
        await ring.read_caller("Bearer right", "a", "send")

    reads.clear()
    is_changed.clear()
    taking = asyncio.create_task(rates.take("shop"))
    await reads.wait()
    quotas["shop"] = 1
    rates.set("shop", 1)
    is_changed.set()
    await taking
    with pytest.raises(RequestRefused):
        await rates.take("shop")


async def test_waiters_are_bounded_and_leave_nothing() -> None:
    waiters = Waiters(1)
    event = waiters.enter(("t", "r"))
    with pytest.raises(RequestRefused):
        waiters.enter(("t", "s"))
    waiters.wake(("t", "r"))
    await waiters.wait(event, 60)
    waiters.leave(("t", "r"), event)
    assert waiters.count == 0
    waiters.leave(("t", "s"), waiters.enter(("t", "s")))
