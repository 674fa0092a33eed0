"""The files of dispatch, and which of them remain at the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from godwit.dispatch.folder import DispatchFolder, runtime_folder


def test_without_a_data_directory_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = DispatchFolder("")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.note_listener("http://127.0.0.1:1")
    note = runtime_folder() / "dispatch.json"
    assert json.loads(note.read_text()) == {"url": "http://127.0.0.1:1", "key_file": str(folder.admin_key_file)}
    folder.close()
    assert not folder.path.exists() and not note.exists()


def test_a_data_directory_keeps_its_files(tmp_path: Path) -> None:
    folder = DispatchFolder(str(tmp_path))
    folder.close()
    assert folder.path == tmp_path / "dispatch" and folder.path.exists()
