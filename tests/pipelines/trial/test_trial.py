"""The trial: after any damage to a journal, a checkpoint or a table, every difference from what was published is reported.

A real node, killed; the files read independently (ledger.py); damage, places and sizes drawn anew at every run, and named by their seed.
"""

from __future__ import annotations

import ast
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from godwit_pipelines.errors import PipelineError
from godwit_pipelines.jobs import Outcome
from godwit_pipelines.lake import Lake
from godwit_pipelines.progress import translate
from tests.pipelines.conftest import Runs
from tests.pipelines.node.serving import node_process
from tests.pipelines.trial import ledger
from tests.pipelines.trial.ledger import Ledger, Listener

ROUNDS = 3
Harm = Callable[[bytearray, int, int, random.Random], None]


def flip(content: bytearray, at: int, end: int, chance: random.Random) -> None:
    content[at] ^= 1 << chance.randrange(8)


def zero(content: bytearray, at: int, end: int, chance: random.Random) -> None:
    end = min(end, at + chance.randrange(1, 3000))
    content[at:end] = bytes(end - at)


def overwrite(content: bytearray, at: int, end: int, chance: random.Random) -> None:
    end = min(end, at + chance.randrange(1, 3000))
    content[at:end] = chance.randbytes(end - at)


def cut(content: bytearray, at: int, end: int, chance: random.Random) -> None:
    content[at:] = b""


def shift(content: bytearray, at: int, end: int, chance: random.Random) -> None:
    """Bytes of another place, as a disk gives that mixes up its blocks."""
    begin, size = chance.randrange(end), chance.randrange(1, 3000)
    moved = content[begin : begin + size]
    content[at : at + len(moved)] = moved


HARMS: list[Harm] = [flip, zero, overwrite, cut, shift]


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Seeds drawn anew; a failure names its own."""
    seed = random.SystemRandom().randrange(1 << 32)
    request.node.add_report_section("setup", "seed", str(seed))
    return random.Random(seed)


def live(folder: Path, account: Ledger, chance: random.Random, *, rounds: int = 4) -> None:
    """A node that takes some messages, hands them over, has written down that it did and is killed."""
    folder.mkdir(exist_ok=True)
    before = ledger.delivered(folder / "data", ledger.ALL)
    with node_process(folder, "--set", "node.name=a") as (url, process):
        listener = Listener(url, ledger.ALL)
        for _ in range(rounds):
            count = chance.randrange(1, 60)
            account.publish(url, count)
            listener.take(count)
        listener.close()
        ledger.wait_delivered(folder / "data", ledger.ALL, before)
        account.received += listener.received
        process.kill()
        process.wait()


def open_segments(data: Path) -> list[Path]:
    """The files of messages that the node had not sealed, in order."""
    return sorted((data / "journal/messages").glob("*.arrows"))


def land(run_job: Runs) -> Outcome | PipelineError:
    """What the job says: an outcome, or the sentence that it ended with."""
    try:
        return run_job("land", streams="messages,runs,access,deliveries")
    except Exception as error:
        failed = translate(error)
        if isinstance(failed, PipelineError):
            return failed
        raise


def check_whole(lake: Path, account: Ledger, run_job: Runs, delivered: int) -> None:
    """Every message is there once, in bronze and in gold, and the jobs say so. `delivered`: as the journals' files say."""
    assert set(account.received) == account.taken and set(account.received.values()) == {1}
    numbers = ledger.landed_numbers(lake)
    assert set(numbers) == account.taken and set(numbers.values()) == {1}
    reconciled, audited = run_job("reconcile"), run_job("audit")
    assert (reconciled.found, audited.found) == (0, 0), (reconciled.text, audited.text)
    assert not ledger.named_offsets(lake, "hole", "lost", "quarantined")
    assert 0 < ledger.audited(lake, ledger.ALL) == delivered <= account.received.total()
    run_job("usage")
    rows = ledger.table_rows(lake, "bronze.messages")
    counted = sum(row["in_messages"] for row in ledger.table_rows(lake, "gold.usage_1h"))
    assert counted in (0, len(rows)), "an hour that may still gain rows is not summed up"


def test_the_independent_reading_imports_nothing_of_the_pipelines() -> None:
    tree = ast.parse(Path(ledger.__file__).read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {getattr(node, "module", None) or node.names[0].name for node in imports}
    assert names and not any(name.startswith(("godwit", "tests")) for name in names)


@pytest.mark.long
@pytest.mark.parametrize("number", range(ROUNDS * len(HARMS)))
def test_damage_of_an_open_segment_is_named_to_the_row(
    number: int, tmp_path: Path, lake: Lake, run_job: Runs, chance: random.Random
) -> None:
    account, folder = Ledger(), tmp_path / "node"
    live(folder, account, chance, rounds=chance.randrange(2, 12))
    while not open_segments(folder / "data"):  # killed between a segment's end and the next one's first row
        live(folder, account, chance)
    data = (folder / "data").rename(tmp_path / "node-1")
    offsets = ledger.journal_offsets(data)
    assert set(offsets) == account.taken
    path = open_segments(data)[-1]
    content = bytearray(path.read_bytes())
    end, harm = len(content.rstrip(b"\0")), HARMS[number % len(HARMS)]
    harm(content, chance.randrange(end), end, chance)
    path.write_bytes(content)

    land(run_job)
    run_job("reconcile")
    numbers = ledger.landed_numbers(lake.folder)
    assert set(numbers) <= account.taken and set(numbers.values()) <= {1}
    gone = {offsets[number] for number in account.taken - set(numbers)}
    named = ledger.named_offsets(lake.folder, "lost", "quarantined", "hole")
    landed = {row["journal_offset"] for row in ledger.table_rows(lake.folder, "bronze.messages")}
    assert not named & landed
    behind = max(named | landed, default=-1)
    assert {offset for offset in gone if offset <= behind} <= named
    assert named <= gone | (set(range(behind + 1)) - set(offsets.values())), "nothing sound is called lost"
    audited = run_job("audit")
    assert audited.found == 0, f"nothing that was handed over is called a fault: {audited.text}"
    assert 0 < ledger.audited(lake.folder, ledger.ALL) == ledger.delivered(data, ledger.ALL)
    if any(offset > behind for offset in gone):
        assert harm in (cut, zero) or ledger.has_tail(lake.folder), "what cannot be read yet is named by its bytes"


@pytest.mark.long
def test_what_was_handed_over_of_the_first_messages_is_judged_though_they_are_damaged(
    tmp_path: Path, lake: Lake, run_job: Runs, chance: random.Random
) -> None:
    account = Ledger()
    live(tmp_path / "life", account, chance)
    data = (tmp_path / "life/data").rename(tmp_path / "node-1")
    files = (data / "journal/messages").iterdir()
    path = min(file for file in files if file.suffix in (".arrow", ".arrows"))
    content = bytearray(path.read_bytes())
    at = content.index(b"number", content.index(b"/trial/0"))
    content[at : at + 6] = b"NUMBER"
    path.write_bytes(content)
    land(run_job)
    assert 0 not in ledger.landed_numbers(lake.folder)
    audited = run_job("audit")
    assert audited.found == 0 and audited.text.startswith("UNPROVEN"), audited.text
    assert 0 < ledger.audited(lake.folder, ledger.ALL) == ledger.delivered(data, ledger.ALL)


@pytest.mark.long
def test_a_journal_made_anew_lands_as_well_or_ends_the_job(
    tmp_path: Path, lake: Lake, run_job: Runs, chance: random.Random
) -> None:
    account, folder = Ledger(), tmp_path / "node"
    live(folder, account, chance)
    data = tmp_path / "node-1"
    (folder / "data").rename(data)
    assert isinstance(land(run_job), Outcome)
    check_whole(lake.folder, account, run_job, ledger.delivered(data, ledger.ALL))
    shutil.rmtree(data)
    live(folder, account, chance, rounds=8)
    (folder / "data").rename(data)
    if isinstance(land(run_job), Outcome):
        assert set(ledger.landed_numbers(lake.folder)) == account.taken


@pytest.mark.long
def test_a_checkpoint_put_back_ends_the_job_and_without_it_all_is_there(
    tmp_path: Path, lake: Lake, run_job: Runs, chance: random.Random
) -> None:
    account, folder = Ledger(), tmp_path / "node-1"
    checkpoint, copy = Path(lake.checkpoint("land-messages")), tmp_path / "copy"
    for life in range(3):
        live(tmp_path / "life", account, chance)
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(tmp_path / "life/data", folder)
        assert isinstance(land(run_job), Outcome)
        if not life:
            shutil.copytree(checkpoint, copy)
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    assert isinstance(land(run_job), PipelineError), "nothing is committed for a batch that the table has"
    shutil.rmtree(checkpoint)
    assert isinstance(land(run_job), Outcome)
    check_whole(lake.folder, account, run_job, ledger.delivered(folder, ledger.ALL))


@pytest.mark.long
def test_a_table_that_is_made_again_has_every_message_once(
    tmp_path: Path, lake: Lake, run_job: Runs, chance: random.Random
) -> None:
    account = Ledger()
    live(tmp_path / "life", account, chance)
    (tmp_path / "life/data").rename(tmp_path / "node-1")
    assert isinstance(land(run_job), Outcome)
    shutil.rmtree(lake.path("bronze.messages"))
    assert isinstance(land(run_job), PipelineError), "a table that is gone is not begun without its rows"
    shutil.rmtree(lake.checkpoint("land-messages"))
    assert isinstance(land(run_job), Outcome)
    check_whole(lake.folder, account, run_job, ledger.delivered(tmp_path / "node-1", ledger.ALL))
