"""How `godwit send` finds a dispatch, and its error if there is none."""

import json
from pathlib import Path

import pytest

from godwit.cli.send import SendFailed, call, find_dispatch
from godwit.errors import ConfigInvalid


def test_options_win_over_the_note_of_the_dispatch_that_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("GODWIT_DISPATCH_KEY", raising=False)
    with pytest.raises(SendFailed, match="godwit serve --dispatch"):
        find_dispatch(None, None)
    (tmp_path / "godwit").mkdir()
    (tmp_path / "key").write_text("gwk_a\n")
    note = {"url": "http://127.0.0.1:1", "key_file": str(tmp_path / "key")}
    (tmp_path / "godwit" / "dispatch.json").write_text(json.dumps(note))
    assert find_dispatch(None, None) == ("http://127.0.0.1:1", "gwk_a")
    with pytest.raises(SendFailed, match="needs a key of that dispatch"):
        find_dispatch("http://other/", None)  # the key of the dispatch that runs here is for no other
    (tmp_path / "other").write_text("gwk_b")
    assert find_dispatch("http://other", tmp_path / "other") == ("http://other", "gwk_b")
    (tmp_path / "other").write_text("gwk_b\ngwk_c")
    with pytest.raises(SendFailed, match="one word of printable ASCII"):
        find_dispatch("http://other", tmp_path / "other")
    monkeypatch.setenv("GODWIT_DISPATCH_KEY", "gwk_c")
    assert find_dispatch("http://other", None) == ("http://other", "gwk_c")


def test_what_cannot_be_reached_is_named() -> None:
    with pytest.raises(SendFailed, match="127.0.0.1:1 cannot be reached"):
        call("http://127.0.0.1:1", "gwk_a", "GET", "/health/ready")


@pytest.mark.parametrize(
    "server", ["foo:x", "ftp://a", "http://[::1", "http://a..b", "http://user:hidden@a", "http://a:0"]
)
def test_an_address_of_dispatch_that_is_not_valid_is_refused_without_its_password(server: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("gwk_a")
    with pytest.raises(ConfigInvalid) as refused:
        find_dispatch(server, tmp_path / "key")
    assert refused.value.key == "--dispatch" and "hidden" not in str(refused.value)
