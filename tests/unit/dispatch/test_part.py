"""Dispatch beside no node at all: it starts, is ready, and lets its folder go."""

from __future__ import annotations

from pathlib import Path

import pytest

from godwit.config import Address, build_config
from godwit.dispatch.part import DispatchPart
from godwit.errors import ConfigInvalid, ListenFailed


def build(folder: Path, address: str = "127.0.0.1:0") -> DispatchPart:
    table = {"node": {"data_directory": str(folder)}, "dispatch": {"enabled": True, "address": address}}
    return DispatchPart(build_config(table, {}, {}))


async def test_one_process_at_a_time_has_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    part = build(tmp_path)
    assert part.config.dispatch.token_keys_file.endswith("keys.json")
    with pytest.raises(ConfigInvalid, match="another dispatch"):
        build(tmp_path)
    address = await part.start(Address("127.0.0.1", 9))
    other = build(tmp_path / "other", str(address))
    with pytest.raises(ListenFailed, match=r"dispatch\.address"):
        await other.start(Address("127.0.0.1", 9))
    await other.stop()
    await part.stop()
    await part.stop()
    await build(tmp_path).stop()
