"""Which node and which token a command talks to: flags before environment before this machine."""

from pathlib import Path

import pytest

from godwit.cli.client_options import read_servers, read_token
from godwit.errors import ConfigInvalid


def test_servers_are_the_flags_the_environments_or_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GODWIT_SERVER", raising=False)
    assert read_servers(()) == ["ws://127.0.0.1:8800"]
    monkeypatch.setenv("GODWIT_SERVER", "a:1, wss://b:2")
    assert read_servers(()) == ["ws://a:1", "wss://b:2"]
    assert read_servers(("c:3",)) == ["ws://c:3"]


def test_a_token_is_the_files_or_the_environments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GODWIT_TOKEN", raising=False)
    assert read_token(None) is None
    monkeypatch.setenv("GODWIT_TOKEN", "from-environment")
    assert read_token(None) == "from-environment"
    file = tmp_path / "token"
    file.write_text("from-file\n")
    assert read_token(file) == "from-file"
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        read_token(tmp_path / "missing")
    file.write_text("[admin]\nsecret\n")
    with pytest.raises(ConfigInvalid, match="is not one token") as told:
        read_token(file)
    assert "secret" not in str(told.value)
