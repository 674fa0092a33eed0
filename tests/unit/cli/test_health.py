"""`godwit health` with a node's admin port: alive, ready, stopped, and found by its data directory."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from godwit import testing
from godwit.cli.health import health, read_note, write_note
from godwit.errors import NodeFailed
from godwit.testing.fake_engine import open_fake_engine


@pytest.fixture
async def node() -> AsyncIterator[testing.RunningNode]:
    async with testing.node(open_engine=open_fake_engine) as running:
        yield running


async def run(*words: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, health, words)


async def test_a_node_that_serves_is_alive_and_ready(node: testing.RunningNode) -> None:
    for words in ((), ("--ready",)):
        done = await run("--admin", str(node.admin), *words)
        assert done.exit_code == 0 and '"condition": "ready"' in done.output


async def test_a_node_is_found_by_its_data_directory(
    node: testing.RunningNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_note(tmp_path, f"http://{node.admin}")
    assert (await run("--data", str(tmp_path))).exit_code == 0
    monkeypatch.setenv("GODWIT_NODE_DATA_DIRECTORY", str(tmp_path))
    assert (await run()).exit_code == 0


async def test_a_node_that_drains_is_alive_and_not_ready(node: testing.RunningNode) -> None:
    from godwit.monitoring.health import Condition

    node.node.health.change(Condition.DRAINING)
    assert (await run("--admin", str(node.admin))).exit_code == 0
    done = await run("--admin", str(node.admin), "--ready")
    assert isinstance(done.exception, NodeFailed) and "503" in str(done.exception)


async def test_a_node_that_is_gone_is_a_reason(tmp_path: Path) -> None:
    async with testing.node(open_engine=open_fake_engine) as running:
        write_note(tmp_path, f"http://{running.admin}")
    done = await run("--data", str(tmp_path))
    assert isinstance(done.exception, NodeFailed) and "cannot be reached" in str(done.exception)


def test_a_note_that_is_missing_or_broken_is_none_or_a_reason(tmp_path: Path) -> None:
    assert read_note(tmp_path) is None and read_note(tmp_path / "x") is None
    (tmp_path / "admin").write_bytes(b"\xff")
    with pytest.raises(NodeFailed):
        read_note(tmp_path)
