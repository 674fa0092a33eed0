"""A node with a data directory, stopped and started again: what it keeps, what clients receive, and what operators see."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from godwit.cli.journal import count_bytes, journal
from godwit.client import Client, Gap, Message, Status
from godwit.model import Ack, GapReason, Position
from tests.faults.ways import QUICK
from tests.node_process import NodeProcess, running_node

DEADLINE_S = 60
ROOM_BYTES = 1 << 20


async def test_messages_positions_and_keys_outlive_a_node_that_is_stopped_in_order(tmp_path: Path) -> None:
    settings: dict[str, object] = {"node.data_directory": tmp_path, "node.shards": 1, "drain.grace_ms": 200}
    async with asyncio.timeout(DEADLINE_S):
        async with running_node(settings) as node, Client(node.url, settings=QUICK) as client:
            places = [await client.publish("/a/b", {"n": n}, key=f"key-of-sixteen-{n}", ack=Ack.DISK) for n in range(5)]
            first = places[0].position
            assert first is not None and await node.terminate() == 0
        async with running_node(settings) as node, Client(node.url, settings=QUICK) as client:
            again = await client.publish("/a/b", {"n": 4}, key="key-of-sixteen-4", ack=Ack.DISK)
            assert again.is_duplicate and again.position == places[4].position
            subscription = client.subscribe("/a/b", after=first)
            items = subscription.items()
            await subscription.joined()
            fresh = await client.publish("/a/b", {"n": 5})
            got = [item for item in [await anext(items) for _ in range(6)] if not isinstance(item, Status)]
            assert [item.json()["n"] for item in got if isinstance(item, Message)] == [1, 2, 3, 4, 5]
            assert isinstance(got[4], Message) and got[4].after == places[4].position
            assert fresh.position is not None and fresh.position.epoch > first.epoch and fresh.position.sequence == 1
            async with aiohttp.ClientSession() as session, session.get(f"http://{node.admin}/health/ready") as answer:
                assert answer.status == 200 and "journal" not in await answer.json()
            assert await node.terminate() == 0
    shown = CliRunner().invoke(journal, ["show", str(tmp_path), "--json"])
    assert shown.exit_code == 0, shown.output
    streams = {row["stream"]: row for row in json.loads(shown.output)}
    assert streams["messages"]["rows"] >= 6 and streams["access"]["rows"] > 0 and streams["deliveries"]["rows"] > 0
    table = CliRunner().invoke(journal, ["show", str(tmp_path)], env={"COLUMNS": "80"}).output
    assert "sealed rows" in table and "deliveries" in table and streams["messages"]["newest"] in table, (
        "nothing is cut off"
    )
    assert CliRunner().invoke(journal, ["check", str(tmp_path)]).exit_code == 0
    sealed = sorted((tmp_path / "journal" / "messages").glob("*.arrow"))[0]
    content = bytearray(sealed.read_bytes())
    place = content.index(b'{"n": 3}') if b'{"n": 3}' in content else content.index(b'"n"')
    content[place] ^= 1
    sealed.write_bytes(content)
    bent = CliRunner().invoke(journal, ["check", str(tmp_path)])
    assert bent.exit_code == 1 and "damaged" in bent.output, bent.output
    for length, said in (
        (-10, "its footer or an Arrow marker is missing"),
        (0, "0 good rows of "),
    ):
        sealed.write_bytes(bytes(content[:length]))
        cut = CliRunner().invoke(journal, ["check", str(tmp_path)])
        assert cut.exit_code == 1 and f"messages/{sealed.name}: " in cut.output and said in cut.output, cut.output
    there = len(list(sealed.parent.parent.glob("*/*.arrow"))) - 1
    sealed.unlink()
    gone = CliRunner().invoke(journal, ["check", str(tmp_path)])
    assert gone.exit_code == 1 and f"messages/{sealed.name}: missing with " in gone.output
    assert f"\n{there} segments, " in gone.output, "what is missing is not counted"
    manifest = tmp_path / "journal/messages/manifest.json"
    for text, said in (
        ("{", "manifest.json: cannot be read"),
        ('{"format": 1}', "has format 1: this version reads only format 2"),
        ('{"format": 3}', "has format 3: this version reads only format 2"),
    ):
        manifest.write_text(text)
        checked, listed = (CliRunner().invoke(journal, [verb, str(tmp_path)]) for verb in ("check", "show"))
        assert (checked.exit_code, listed.exit_code) == (1, 1)
        assert said in checked.output and "manifest.json" in listed.output, (checked.output, listed.output)
    assert said in listed.output, "both know the same format"


@pytest.mark.parametrize("made", ["", "journal", "journal/messages"])
@pytest.mark.parametrize("verb", ["check", "show"])
def test_a_folder_without_a_journal_is_told_as_that(tmp_path: Path, made: str, verb: str) -> None:
    (tmp_path / made).mkdir(parents=True, exist_ok=True)
    found = CliRunner().invoke(journal, [verb, str(tmp_path)])
    assert found.exit_code == 1 and f"{tmp_path} does not contain a journal: give" in found.output, found.output


def _find_room(folder: Path) -> Path | None:
    """An open segment with room ahead of its rows."""
    for file in sorted(folder.glob("*.arrows")):
        with suppress(FileNotFoundError):  # sealed since
            if file.stat().st_size == ROOM_BYTES:
                return file
    return None


async def test_an_open_segment_with_room_ahead_is_read_as_it_is_and_its_room_is_no_row_s(tmp_path: Path) -> None:
    settings: dict[str, object] = {"node.data_directory": tmp_path, "node.shards": 1, "drain.grace_ms": 200}
    settings["journal.segment_age_ms_max"] = 3_600_000  # it is looked at for as long as it takes
    messages = tmp_path / "journal" / "messages"
    async with asyncio.timeout(DEADLINE_S):
        async with running_node(settings) as node, Client(node.url, settings=QUICK) as client:
            published = 0
            while not (opened := _find_room(messages)):
                await client.publish("/a/b", {"n": published}, ack=Ack.DISK)
                published += 1
            await client.publish("/a/b", {"n": published}, ack=Ack.DISK)
            assert opened.stat().st_size == ROOM_BYTES and 0 < count_bytes(opened) < ROOM_BYTES // 2
            checked = CliRunner().invoke(journal, ["check", str(tmp_path), "--json"])
            files = {row["file"]: row for row in map(json.loads, checked.output.splitlines())}
            found = files[opened.name]
            assert (found["torn_bytes"], found["damaged"]) == (0, 0) and found["rows"] > 0, found
            assert checked.exit_code == 0 and 0 < found["bytes"] <= count_bytes(opened)
            await node.kill()
        async with running_node(settings) as node, aiohttp.ClientSession() as session:
            query = {"subject": "/a/b", "last": "1"}
            async with session.get(f"http://{node.host}:{node.port}/v1/messages", params=query) as answer:
                pushes = [item for item in await answer.json() if "message" in item]
            assert pushes[0]["content"] == {"n": published}
            assert await node.terminate() == 0


async def test_a_data_directory_whose_journal_cannot_be_opened_is_named_before_a_port_opens(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("in the way")
    command = (sys.executable, "-m", "godwit", "serve", "--data", str(tmp_path), "--client", "127.0.0.1:0")
    command += ("--mqtt", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    async with asyncio.timeout(DEADLINE_S):
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        said, error = await process.communicate()
    assert process.returncode == 2 and not said
    assert f"node.data_directory: '{tmp_path}' cannot be used" in error.decode()


@asynccontextmanager
async def a_run(folder: Path, published: int) -> AsyncIterator[tuple[NodeProcess, list[Position]]]:
    """A node in this directory that has accepted so many messages more, and is killed in the end."""
    async with running_node({"node.data_directory": folder, "node.shards": 1}) as node:
        async with Client(node.url, settings=QUICK) as client:
            places = [await client.publish("/a", {"n": n}, ack=Ack.DISK) for n in range(published)]
        yield node, [place.position for place in places if place.position is not None]
        await node.kill()


async def resume(node: NodeProcess, after: Position, last: Position) -> tuple[list[Gap], list[Position]]:
    """What a client at this position receives: gaps, and the positions of messages up to the last that was published."""
    gaps: list[Gap] = []
    places: list[Position] = []
    async with Client(node.url, settings=QUICK) as client:
        async for item in client.subscribe("/a", after=after).items():
            if isinstance(item, Gap):
                gaps.append(item)
            elif isinstance(item, Message) and item.position is not None:
                places.append(item.position)
                if item.position == last:
                    break
    return gaps, places


@pytest.mark.parametrize("part", [".", "journal"], ids=["the directory", "its journal alone"])
async def test_a_position_of_a_run_that_was_undone_is_a_gap_and_never_another_run_s(tmp_path: Path, part: str) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    async with asyncio.timeout(DEADLINE_S):
        async with a_run(data, 3) as (_, kept):
            pass
        shutil.copytree(data, copy)
        async with a_run(data, 4) as (_, undone):
            pass
        shutil.rmtree(data / part)
        shutil.copytree(copy / part, data / part)
        async with a_run(data, 6) as (node, present):
            assert present[0].epoch not in {kept[0].epoch, undone[0].epoch}
            for after in (undone[0], undone[-1], Position(undone[0].epoch, 0)):
                gaps, places = await resume(node, after, present[-1])
                assert [(gap.reason, gap.missed) for gap in gaps] == [(GapReason.EPOCH, None)], after
                assert places == present, "what is kept of the present epoch follows"
            gaps, places = await resume(node, kept[1], present[-1])
            assert gaps == [] and places == [kept[2], *present]
        async with a_run(data, 1) as (node, last):
            gaps, _ = await resume(node, undone[2], last[-1])
            assert [(gap.reason, gap.missed) for gap in gaps] == [(GapReason.EPOCH, None)]
            gaps, places = await resume(node, kept[2], last[-1])
            assert gaps == [] and places == [*present, *last]


async def test_a_journal_that_was_put_into_another_directory_goes_on_in_later_epochs(tmp_path: Path) -> None:
    runs: list[list[Position]] = []
    async with asyncio.timeout(DEADLINE_S):
        for _ in range(2):
            async with a_run(tmp_path / "data", 2) as (_, places):
                runs.append(places)
        shutil.copytree(tmp_path / "data" / "journal", tmp_path / "new" / "journal")
        first = runs[0][0]
        for _ in range(3):
            async with a_run(tmp_path / "new", 2) as (node, places):
                gaps, received = await resume(node, first, places[-1])
                runs.append(places)
                assert gaps == [] and received == [place for run in runs for place in run][1:]
    epochs = [run[0].epoch for run in runs]
    assert epochs == sorted(set(epochs)), "each run has its own"
