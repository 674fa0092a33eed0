"""The log lines of a node's start: each only when it applies."""

from __future__ import annotations

import resource
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from godwit.announcement import DESCRIPTORS_KEPT, announce, is_loopback
from godwit.config import Address, build_config
from godwit.engine import Listening
from tests.authority import Authority

HERE = Address.parse("127.0.0.1:1")
LISTENING = Listening(HERE, "io_uring", "", 1, mqtt=HERE)


def said(listening: Listening = LISTENING, **settings: str) -> dict[str, Any]:
    """The lines of the log by their event, where these settings differ from the defaults."""
    with capture_logs() as lines:
        announce(build_config({}, {}, settings), listening, HERE)
    return {line["event"]: line for line in lines}


def test_a_node_as_it_should_be_says_where_it_listens_and_nothing_else() -> None:
    assert list(said()) == ["node_started"]
    assert said()["node_started"]["client"] == str(HERE)


@pytest.mark.parametrize(
    ("listening", "settings", "event"),
    [
        (replace(LISTENING, driver_reason="forbidden here"), {}, "driver_fell_back"),
        (replace(LISTENING, mqtt=None), {}, "mqtt_disabled"),
        (LISTENING, {"node.data_directory": "data"}, "journal_disabled"),
        (replace(LISTENING, client=Address.parse("0.0.0.0:1")), {}, "access_open"),
    ],
)
def test_what_an_operator_had_better_know_is_said(listening: Listening, settings: dict[str, str], event: str) -> None:
    assert list(said(listening, **settings)) in (["node_started", event], [event, "node_started"])


def test_what_came_back_and_what_was_repaired_is_said() -> None:
    lines = said(replace(LISTENING, resumed={"messages": 7, "said": ["a torn tail was cut"]}))
    assert lines["journal_opened"]["messages"] == 7 and "said" not in lines["journal_opened"]
    assert lines["journal_repaired"]["repair"] == "a torn tail was cut"


@pytest.mark.parametrize(("spare", "is_said"), [(0, False), (-1, True)])
def test_descriptors_that_a_storm_could_take_are_said(
    spare: int, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 500
    monkeypatch.setattr(resource, "getrlimit", lambda _: (most + DESCRIPTORS_KEPT + spare, 4_096))
    settings = {"limits.connections_max": str(most)}
    assert ("descriptor_limit_low" in said(replace(LISTENING, driver="readiness"), **settings)) is is_said
    assert "descriptor_limit_low" not in said(LISTENING, **settings), "a ring's connections are no descriptors"


@pytest.mark.parametrize(
    ("host", "is_one"),
    [("localhost", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("10.0.0.1", False)],
)
def test_only_this_machine_reaches_a_loopback_address(host: str, is_one: bool) -> None:
    assert is_loopback(host) is is_one


def test_a_certificate_that_has_expired_or_will_soon_is_warned_about(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    lives = {"old": timedelta(hours=-1), "short": timedelta(hours=1), "long": timedelta(days=300)}
    files = [authority.issue(name, lives=left) for name, left in lives.items()]
    certificates, keys = ([one[part] for one in files] for part in (0, 1))
    config = build_config({"tls": {"certificate_files": certificates, "key_files": keys}}, {}, {})
    with capture_logs() as lines:
        announce(config, LISTENING, HERE)
    named = [(line["event"], Path(line["file"]).stem) for line in lines if line["event"].startswith("certificate")]
    assert named == [("certificate_expired", "old"), ("certificate_expires", "short")]
