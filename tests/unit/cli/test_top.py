"""The table shows the node's values, in numbers that fit, and marks values that should be zero."""

import asyncio
import json

import pytest
from click.testing import CliRunner
from rich.console import Console

from godwit import testing
from godwit.cli.top import COLUMNS, draw, top, write_number
from godwit.testing.fake_engine import open_fake_engine

STATS = {
    "node": "n1",
    "version": "0.1.0",
    "condition": "draining",
    "uptime_ms": 90_061_000,
    "now": {
        "node": {"connections": 12_345, "gaps_per_second": 2, "cpu": 0.256, "message_bytes": 1_500_000},
        "shards": {"0": {"connections": 12_345, "cpu": 0.2}},
        "protocols": {"json": {"connections": 12_000}, "binary": {"connections": 0}},
        "codes": {"4114": {"publishes_refused_per_second": 3.5}, "1000": {"closes_per_second": 0}},
        "reasons": {},
    },
    "windows": {
        "1h": {
            "seconds": 3600,
            "covered_seconds": 60,
            "node": {"connections": {"max": 20_000, "mean": 10_000, "deviation": 50}},
        }
    },
}


def show(window: str | None, width: int = 200) -> str:
    console = Console(width=width, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(draw(STATS, window, width))
    return captured.get()


def test_node_shards_and_protocols_that_are_used_have_a_row() -> None:
    shown = show(None)
    assert "n1 0.1.0 draining" in shown and "up 1 d 01:01:01" in shown and "logs 1.5MB" in shown
    rows = [line.split()[0] for line in shown.splitlines() if line]
    assert {"node", "shard", "json"} <= set(rows) and "binary" not in rows
    assert "12.3k" in shown and "0.256" in shown
    assert "PublishForbidden publishes_refused 3.5/s" in shown and "ClosedNormally" not in shown


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_narrow_terminal_shows_every_column_and_row_in_full(width: int) -> None:
    shown = show(None, width)
    assert "…" not in shown and all(column in shown for column in COLUMNS)
    assert all(len(line.rstrip()) <= width for line in shown.splitlines())
    assert shown.count("shard 0") == shown.count("json") > 1


def test_a_window_says_how_much_of_it_is_known() -> None:
    shown = show("1h")
    assert "over the last 1h (60 s of it are known)" in shown
    [row] = [line for line in shown.splitlines() if line.startswith("connections  ")]
    assert row.split() == ["connections", "12.3k", "10k", "20k", "50"]


@pytest.mark.parametrize(
    "value, written",
    [(None, "–"), (0, "0"), (0.00123, "0.00123"), (999, "999"), (999.9, "1k"), (1_000, "1k"), (999_600, "1M"), (10**14, "100T")],
)  # fmt: skip
def test_numbers_fit_their_columns(value: float | None, written: str) -> None:
    assert write_number(value) == written


async def test_it_asks_the_node_and_prints_once_where_nobody_watches() -> None:
    async with testing.node({"node": {"name": "n1"}}, open_engine=open_fake_engine) as running:
        running.node.monitor.turn()
        for words in (["--once", "--window", "5min"], ["--json"], []):
            words = ["--admin", str(running.admin), *words]
            result = await asyncio.to_thread(CliRunner().invoke, top, words)
            assert result.exit_code == 0, result.output
            if "--json" in words:
                assert json.loads(result.output)["node"] == "n1"
            else:
                assert result.output.startswith("n1 ") and ("over the last 5min" in result.output) == (
                    "--window" in words
                )
