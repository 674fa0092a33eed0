"""Dispatch without a node: it starts, is ready, and releases its folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import uvloop

from godwit.config import Address, build_config
from godwit.dispatch.part import DispatchPart, make_loop
from godwit.errors import ConfigInvalid, ListenFailed


def build(folder: Path, address: str = "127.0.0.1:0") -> DispatchPart:
    table = {"node": {"data_directory": str(folder)}, "dispatch": {"enabled": True, "address": address}}
    return DispatchPart(build_config(table, {}, {}))


async def test_one_process_at_a_time_has_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    part = build(tmp_path)
    assert part.config.dispatch.token_keys_file.endswith("keys.json")
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "node.data_directory"):
        build(tmp_path)
    address = await part.start(Address("127.0.0.1", 9))
    other = build(tmp_path / "other", str(address))
    with pytest.raises(ListenFailed, match=r"dispatch\.address"):
        await other.start(Address("127.0.0.1", 9))
    await other.stop()
    await part.stop()
    await part.stop()
    await build(tmp_path).stop()


async def test_a_key_file_that_is_not_one_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    await build(tmp_path).stop()
    [file] = [path for path in (tmp_path / "dispatch").iterdir() if b"PRIVATE KEY" in path.read_bytes()]
    whole = file.read_bytes()
    file.write_bytes(b"damaged")
    with pytest.raises(ConfigInvalid):
        build(tmp_path)
    file.write_bytes(whole)
    await build(tmp_path).stop()  # refused while the folder is in use


async def test_a_start_that_fails_closes_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    email = {"relay": "127.0.0.1:25", "sender": "news@shop.example", "dkim_key_file": str(tmp_path / "missing.pem")}
    dispatch = {"enabled": True, "address": "127.0.0.1:0", "feedback_journal": True}
    table = {"node": {"data_directory": str(tmp_path)}, "dispatch": dispatch}
    part = DispatchPart(build_config({**table, "dispatch_email": email}, {}, {}))
    with pytest.raises(ConfigInvalid, match="dkim_key_file"):
        await part.start(Address("127.0.0.1", 9))
    await part.stop()
    part = DispatchPart(build_config(table, {}, {}))
    await part.start(Address("127.0.0.1", 9))  # refused while a journal is open in this directory
    await part.stop()


@pytest.mark.parametrize("is_installed", [True, False])
async def test_it_runs_on_uvloop_where_the_extra_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    if not is_installed:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = make_loop()
    assert isinstance(loop, uvloop.Loop) is is_installed
    loop.close()
    part = build(tmp_path)
    await part.start(Address("127.0.0.1", 9))
    await part.stop()
