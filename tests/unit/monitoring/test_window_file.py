"""Exactly the saved windows are loaded, or nothing: a file that was cut, changed or forged is renamed."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from godwit.monitoring.stats_snapshot import NODE_SCOPE, Series
from godwit.monitoring.window_file import WindowFile, WindowFileInvalid, dump_windows, parse_windows
from godwit.monitoring.windows import WINDOWS, Windows

LOAD, CODE = Series(NODE_SCOPE, "load"), Series(("codes", "4114"), "closes_per_second")


def make_windows(seconds: int = 1_000) -> Windows:
    windows = Windows()
    for second in range(seconds):
        windows.add(1e6 + second, 1.0, {LOAD: float(second % 17)} | ({CODE: 1.0} if second > 500 else {}))
    return windows


def test_windows_go_on_after_a_restart_as_if_there_had_been_none(tmp_path: Path) -> None:
    never, file = make_windows(), WindowFile(tmp_path)
    assert file.load() is None
    file.save(dump_windows(make_windows()))
    loaded = file.load()
    assert loaded is not None and loaded.time_s == never.time_s
    for windows in (never, loaded):
        for second in range(500):
            windows.add(1e6 + 2_000 + second, 1.0, {LOAD: 3.0, CODE: 0.0})
    assert all(loaded.read(name) == never.read(name) for name in WINDOWS)
    assert [file.name for file in tmp_path.iterdir()] == ["statistics"]


CONTENT = dump_windows(make_windows(700))


@given(st.integers(0, len(CONTENT) - 1), st.integers(1, 255))
def test_no_byte_can_be_changed_unseen(at: int, by: int) -> None:
    head_bytes = CONTENT.index(b"\n")
    changed = bytearray(CONTENT)
    changed[at] ^= by
    try:
        found = parse_windows(bytes(changed))
    except (WindowFileInvalid, ValueError, KeyError, TypeError, OverflowError):
        return
    assert at < head_bytes, "a changed body was believed"
    assert len(found.series) <= 2


@pytest.mark.parametrize("cut", [0, 1, 50, len(CONTENT) // 2, len(CONTENT) - 1])
def test_a_cut_file_is_put_aside_and_the_windows_begin_anew(tmp_path: Path, cut: int) -> None:
    file = WindowFile(tmp_path)
    file.path.write_bytes(CONTENT[:cut])
    with pytest.raises(WindowFileInvalid, match="cannot be read"):
        file.load()
    assert file.load() is None
    assert (tmp_path / "statistics.unreadable").read_bytes() == CONTENT[:cut]


def test_a_made_up_head_costs_no_memory_and_is_refused() -> None:
    line, _, body = CONTENT.partition(b"\n")
    for change in (
        {"format": 2},
        {"rings": []},
        {"series": [[["node"], str(number)] for number in range(10_000)]},
        {"time_s": "soon"},
        {"rings": [{**ring, "buckets": [[0, 1 << 40]]} for ring in json.loads(line)["rings"]]},
    ):
        head = json.dumps({**json.loads(line), **change}).encode()
        with pytest.raises((WindowFileInvalid, ValueError, KeyError, TypeError)):
            parse_windows(head + b"\n" + body)


def test_a_save_that_fails_leaves_the_one_before(tmp_path: Path) -> None:
    file = WindowFile(tmp_path)
    file.save(CONTENT)
    (tmp_path / "statistics.new").mkdir()
    with pytest.raises(OSError):
        file.save(b"other")
    assert file.path.read_bytes() == CONTENT
