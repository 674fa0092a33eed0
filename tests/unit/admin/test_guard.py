"""Changes through the admin port need the token, and must not come from a foreign web page."""

from pathlib import Path

import pytest

from godwit.admin.guard import TRIES_MAX, Guard, is_own_page, read_admin_token
from godwit.config.admin import AdminConfig
from godwit.errors import ConfigInvalid

TOKEN = "an-admin-token-of-length"
BEARER = {"Host": "localhost:8801", "Authorization": f"Bearer {TOKEN}"}


def test_a_change_needs_the_token_and_reading_does_not() -> None:
    guard = Guard(AdminConfig(token=TOKEN))
    assert guard.check("GET", "/v1/stats", {}, "a") is None
    assert guard.check("POST", "/v1/purge", BEARER, "a") is None
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
    ):
        refused = guard.check("POST", "/v1/purge", headers, "a")
        assert refused is not None and refused.status == 401


def test_where_no_token_is_set_nothing_can_be_changed_with_any() -> None:
    for headers in ({}, BEARER, {"Authorization": "Bearer "}, {"Authorization": "Bearer"}):
        refused = Guard(AdminConfig()).check("DELETE", "/v1/x", headers, "a")
        assert refused is not None and refused.status == 403


def test_reading_can_be_made_to_need_it_too() -> None:
    guard = Guard(AdminConfig(token=TOKEN, token_for_reads=True))
    assert guard.check("GET", "/health/ready", {}, "a") is None
    assert guard.check("GET", "/app.js", {}, "a") is None
    for path in ("/v1/stats", "/metrics"):
        refused = guard.check("GET", path, {}, "a")
        assert refused is not None and refused.status == 401
        assert guard.check("GET", path, BEARER, "a") is None
    with pytest.raises(ConfigInvalid, match="token_for_reads"):
        Guard(AdminConfig(token_for_reads=True))


def test_guessing_is_stopped_for_one_address_for_a_minute() -> None:
    now = [0.0]
    guard = Guard(AdminConfig(token=TOKEN), now_s=lambda: now[0])
    wrong = {**BEARER, "Authorization": "Bearer wrong"}
    statuses = [refused.status for _ in range(TRIES_MAX + 1) if (refused := guard.check("POST", "/v1/x", wrong, "a"))]
    assert statuses == [401] * TRIES_MAX + [429]
    assert guard.check("POST", "/v1/x", BEARER, "a") is None  # whoever guesses behind this address locks nobody out
    assert guard.check("POST", "/v1/x", BEARER, "b") is None
    now[0] = 60.0
    assert guard.check("POST", "/v1/x", BEARER, "a") is None


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({"Host": "h:1"}, True),
        ({"Host": "h:1", "Origin": "http://h:1"}, True),
        ({"Host": "h:1", "Origin": "https://H:1", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Host": "h:1", "Origin": "http://evil.example"}, False),
        ({"Host": "h:1", "Origin": "http://h:2"}, False),
        ({"Host": "h:1", "Origin": "null"}, False),
        ({"Host": "", "Origin": "null"}, False),
        ({"Host": "h:1", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Host": "h:1", "Sec-Fetch-Site": "same-site"}, False),
    ],
)
def test_a_strangers_page_changes_nothing_even_with_the_token(headers: dict[str, str], is_own: bool) -> None:
    assert is_own_page(headers) is is_own
    refused = Guard(AdminConfig(token=TOKEN)).check("POST", "/v1/x", {**BEARER, **headers}, "a")
    assert (refused is None) is is_own


def test_the_token_may_stand_in_a_file_and_must_be_hard_to_guess(tmp_path: Path) -> None:
    file = tmp_path / "admin.token"
    file.write_text(f"{TOKEN}\n")
    assert read_admin_token(AdminConfig(token_file=str(file))) == TOKEN
    assert read_admin_token(AdminConfig()) is None
    for config in (
        AdminConfig(token="short"),
        AdminConfig(token="with blanks in it and long"),
        AdminConfig(token=TOKEN, token_file=str(file)),
        AdminConfig(token_file=str(tmp_path / "none")),
        AdminConfig(token_for_reads=True),
    ):
        with pytest.raises(ConfigInvalid):
            read_admin_token(config)
    file.write_text("\n")
    with pytest.raises(ConfigInvalid):
        read_admin_token(AdminConfig(token_file=str(file)))


def test_a_new_token_replaces_the_old_one() -> None:
    guard = Guard(AdminConfig(token=TOKEN))
    assert guard.check("POST", "/v1/x", BEARER, "a") is None
    guard.configure(AdminConfig(), TOKEN[::-1])
    assert guard.check("POST", "/v1/x", BEARER, "a") is not None
