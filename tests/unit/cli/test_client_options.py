"""Which node and which token a command talks to: flags before environment before this machine."""

from pathlib import Path

import click
import pytest

from godwit.cli.client_options import check_selector, read_servers, read_token, translate_mqtt
from godwit.errors import ConfigInvalid
from godwit.subject import check_pattern, check_subject


def test_servers_are_the_flags_the_environments_or_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GODWIT_SERVER", raising=False)
    assert read_servers(()) == ["ws://127.0.0.1:8800"]
    monkeypatch.setenv("GODWIT_SERVER", "a:1, wss://b:2")
    assert read_servers(()) == ["ws://a:1", "wss://b:2"]
    assert read_servers(("c:3",)) == ["ws://c:3"]
    monkeypatch.setenv("GODWIT_SERVER", "a:1,")
    assert read_servers(()) == ["ws://a:1"]
    for empty in ("", " ", ","):
        monkeypatch.setenv("GODWIT_SERVER", empty)
        assert read_servers(()) == ["ws://127.0.0.1:8800"]


def test_a_token_is_the_files_or_the_environments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GODWIT_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("GODWIT_TOKEN", "from-environment")
    assert read_token(None) == "from-environment"
    file = tmp_path / "token"
    file.write_text("from-file\n")
    assert read_token(file) == "from-file"
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--token-file"):
        read_token(tmp_path / "missing")
    file.write_text("[admin]\nsecret\n")
    with pytest.raises(ConfigInvalid, match="is not one token") as raised:
        read_token(file)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("http://a:1/", "did you mean ws://a:1?"),
        ("https://a", "did you mean wss://a?"),
        ("ws://user:hidden@a", "holds a user or a password"),
        ("http://user:hidden@a", "must begin with ws:// or wss://"),
        ("a:port", "expected ws://HOST:PORT"),
        ("", "must begin with ws:// or wss://"),
    ],
)
def test_an_address_that_is_not_valid_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch, server: str, said: str
) -> None:
    with pytest.raises(click.BadParameter) as refused:
        read_servers((server,))
    assert said in refused.value.format_message() and "hidden" not in refused.value.format_message()
    if not server:
        return
    monkeypatch.setenv("GODWIT_SERVER", server)
    with pytest.raises(click.BadParameter, match=r"valid|password") as refused:
        read_servers(())
    assert "GODWIT_SERVER" in refused.value.format_message()


def test_a_subject_without_its_slash_gets_a_hint() -> None:
    with pytest.raises(ConfigInvalid, match=r"did you mean /rooms/1\?"):
        check_selector("SUBJECT", "rooms/1", check_subject)
    with pytest.raises(ConfigInvalid) as refused:
        check_selector("SUBJECT", "rooms/*", check_subject)
    assert not refused.value.hint
    for given, meant in {"rooms/#": "/rooms/**", "#": "/**", "+/a": "/*/a", "rooms/*": "/rooms/*"}.items():
        with pytest.raises(ConfigInvalid) as refused:
            check_selector("PATTERN", given, check_pattern)
        assert refused.value.hint == f"did you mean {meant}?"


def test_a_topic_filter_of_mqtt_is_translated() -> None:
    filters = {"/rooms/#": "/rooms/**", "/+/temp": "/*/temp", "/a/+": "/a/*", "/a#/b+": "/a#/b+", "/#/a": "/#/a"}
    assert {each: translate_mqtt(each) for each in filters} == filters
