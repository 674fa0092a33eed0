"""Webhooks without a network: what answers mean, and when the next attempt is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from godwit.dispatch.channels.letter import Letter
from godwit.dispatch.channels.outcomes import make_outcome
from godwit.dispatch.channels.webhook.classes import classify, read_retry_after
from godwit.dispatch.channels.webhook.custom import PRESETS, make_preset
from godwit.dispatch.channels.webhook.envelope import sign, webhook_id
from godwit.dispatch.channels.webhook.sender import host_of
from godwit.dispatch.model import DeliveryKey, Result, Shipment, State, Target

SHIPMENT = Shipment(DeliveryKey(7, 8, "webhook", 9), "t", Target(8, 9, "ann", "https://example.com/x"), 2, 100_000)


@pytest.mark.parametrize(
    ("statuses", "result"),
    [
        ((200, 204, 299), Result.OK),
        ((408, 425, 500, 503, 599), Result.TEMPORARY),
        ((429,), Result.THROTTLED),
        ((410,), Result.ADDRESS),
        ((100, 301, 302, 400, 401, 404, 422), Result.CONTENT),
    ],
)
def test_the_class_of_a_status(statuses: tuple[int, ...], result: Result) -> None:
    assert {classify(status) for status in statuses} == {result}


def test_a_failure_is_tried_again_until_the_notification_expires() -> None:
    again = make_outcome(SHIPMENT, Result.TEMPORARY, "HTTP 503", 1_000, 0.5, 10_000)
    assert (again.state, again.retry_at_ms, again.attempt) == (State.DEFERRED, 11_000, 2)
    for result, state in ((Result.TEMPORARY, State.FAILED), (Result.DOUBT, State.UNKNOWN)):
        assert make_outcome(SHIPMENT, result, "", 99_999, 0.5).state is state
    assert make_outcome(SHIPMENT, Result.OK, "HTTP 200", 0, 0.5).state is State.SENT
    assert make_outcome(SHIPMENT, Result.ADDRESS, "HTTP 410", 0, 0.5).reason == "address"


def test_a_throttled_delivery_waits_without_an_attempt() -> None:
    asked = make_outcome(SHIPMENT, Result.THROTTLED, "HTTP 429", 1_000, 0.5, 2_000)
    assert (asked.state, asked.retry_at_ms, asked.throttle_ms) == (State.DEFERRED, 4_000, 2_000)
    unsaid = make_outcome(SHIPMENT, Result.THROTTLED, "HTTP 429", 1_000, 0.0)
    assert (unsaid.retry_at_ms, unsaid.throttle_ms) == (6_000, 5_000)
    long = make_outcome(SHIPMENT, Result.THROTTLED, "HTTP 429", 0, 0.0, 10**9)
    assert (long.state, long.throttle_ms) == (State.EXPIRED, 300_000), "one answer does not stop a host for days"


def test_retry_after_is_seconds_or_a_date() -> None:
    texts = (
        "120",
        None,
        "",
        "-1",
        "Fri, 01 Jan",
        "9" * 12,
        "Thu, 01 Jan 1970 00:00:10 GMT",
        "Thu, 01 Jan 1970 00:00:01 GMT",
    )
    assert [read_retry_after(text, 2_000) for text in texts] == [120_000, *[0] * 5, 8_000, 0]
    assert classify(503, asks_to_wait=True) is Result.THROTTLED


@pytest.mark.parametrize(
    "place", ["{} Jan 2026 00:00:00", "1 Jan {} 00:00:00", "1 Jan 2026 {}:00:00", "1 Jan 2026 00:00:{}"]
)
@pytest.mark.parametrize("zone", ["GMT", "-2359", "+{}", "-{}"])
def test_a_number_of_any_length_in_a_date_is_no_error(place: str, zone: str) -> None:
    for number in ("0", "9999", "9" * 20, "9" * 5_000):
        assert read_retry_after(f"Thu, {place} {zone}".format(*[number] * 2), 2_000) >= 0


def test_the_signature_is_that_of_the_specification() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    signed = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}')
    assert signed == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_id_is_the_deliverys_and_the_lane_its_tenants_and_hosts() -> None:
    assert webhook_id(SHIPMENT, Letter("n", 1_700_000_000_000, b"{}")) == "dlv_7_8_9_1700000000000"
    assert host_of(SHIPMENT) == ("t", "example.com")


@pytest.mark.parametrize("preset", sorted(PRESETS))
@pytest.mark.parametrize(
    "content", [{}, {"data": {"a": 1}}, {"url": "https://x.example/"}, {"icon": "https://x.example/i"}]
)
def test_a_preset_has_a_text_whatever_the_content_has(preset: str, content: dict[str, Any]) -> None:
    shown = json.dumps(make_preset(preset, content, {}))
    assert ("https://x.example/" if "url" in content else "Notification") in shown


def test_a_text_that_a_service_would_not_take_is_cut() -> None:
    ntfy = make_preset("ntfy", {"title": "t", "body": "é" * 10_000}, {})["message"]
    assert len(ntfy.encode()) <= 4_096 and ntfy.endswith("é…") and "\ufffd" not in ntfy
    assert make_preset("ntfy", {"body": "x" * 4_096}, {})["message"] == "x" * 4_096
    teams = make_preset("teams", {"title": "t" * 1_000, "body": "🦉" * 10_000}, {})
    assert len(msgspec.json.encode(teams)) < 28_000
