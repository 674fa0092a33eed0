"""Metrics of streaming queries: Spark's reports of batches, added up, as OpenMetrics at an address and in a file."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from godwit_pipelines.errors import ConfigInvalid
from godwit_pipelines.metrics import CONTENT_TYPE, Figures, behind, rows_taken, serving

RULES = Path(__file__).resolve().parents[2] / "monitoring" / "prometheus" / "pipelines.yml"


def batch(rows: int, end: dict[str, int], latest: dict[str, int]) -> dict[str, Any]:
    offset = {"stream": "messages", "nodes": end}
    return {
        "batchDuration": 500,
        "numInputRows": rows,
        "timestamp": "2026-11-21T12:00:00.000Z",
        "sources": [{"endOffset": json.dumps(offset), "latestOffset": json.dumps({"nodes": latest})}],
        "observedMetrics": {"ahead 0": {"rows": 3}, "other": {"rows": 5}},
        "stateOperators": [{"numRowsTotal": 7, "memoryUsedBytes": 700, "numRowsDroppedByWatermark": 2}],
    }


def test_batches_add_up(tmp_path: Path) -> None:
    figures = Figures(tmp_path / "metrics.txt")
    figures.names["id"] = 'a "name"'
    figures.take("id", batch(100, {"a": 100}, {"a": 130, "b": 5}))
    figures.take("id", batch(30, {"a": 130, "b": 5}, {"a": 130, "b": 5}))
    lines = (tmp_path / "metrics.txt").read_text().splitlines()
    label = '{query="a \\"name\\""}'
    assert f"godwit_pipelines_rows_total{label} 130" in lines and f"godwit_pipelines_batches_total{label} 2" in lines
    assert f"godwit_pipelines_lag_rows{label} 0" in lines and f"godwit_pipelines_rows_per_second{label} 60" in lines
    assert f"godwit_pipelines_last_batch_timestamp_seconds{label} 1795262400" in lines
    assert f"godwit_pipelines_late_rows_total{label} 4" in lines
    assert f"godwit_pipelines_future_rows_total{label} 6" in lines
    assert f"godwit_pipelines_state_rows{label} 7" in lines and lines[-1] == "# EOF"


def test_rounds_say_what_they_found(tmp_path: Path) -> None:
    figures = Figures(tmp_path / "metrics.txt")
    figures.take_round("audit", 3, 1.5)
    lines = (tmp_path / "metrics.txt").read_text().splitlines()
    assert 'godwit_pipelines_problems{name="audit"} 3' in lines and "# TYPE godwit_pipelines_problems gauge" in lines
    figures.take_round("audit", 0, 0.5)
    lines = (tmp_path / "metrics.txt").read_text().splitlines()
    assert (
        'godwit_pipelines_problems{name="audit"} 0' in lines
        and 'godwit_pipelines_job_runs_total{name="audit"} 2' in lines
    )
    assert 'godwit_pipelines_round_seconds{name="audit"} 0.5' in lines and lines[-1] == "# EOF"


def test_a_file_that_cannot_be_written_ends_a_job_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Figures(tmp_path / "none" / "metrics.txt")


def test_what_is_not_a_regular_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        with pytest.raises(ConfigInvalid, match="not a regular file"):
            Figures(path)
    assert pipe.is_fifo()


def test_a_file_that_can_no_longer_be_written_is_reported_once(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    figures, said = Figures(folder / "metrics.txt"), list[str]()
    figures.warn = said.append
    folder.rename(tmp_path / "moved")
    figures.take_round("audit", 0, 0.5)
    figures.take_round("audit", 0, 0.5)
    assert len(said) == 1 and "metrics.file" in said[0]
    folder.mkdir()
    figures.take_round("audit", 0, 0.5)
    assert (folder / "metrics.txt").exists()


def test_every_alert_is_about_a_figure_that_there_is() -> None:
    types = re.findall(r"^# TYPE (\S+) (\S+)", Figures().text(), re.MULTILINE)
    figures = {f"{name}_total" if kind == "counter" else name for name, kind in types}
    asked = re.findall(r"^ +expr: (.+)$", RULES.read_text(), re.MULTILINE)
    assert len(asked) > 3 and all(re.findall(r"godwit_\w+", rule) for rule in asked)
    assert {name for rule in asked for name in re.findall(r"godwit_\w+", rule)} <= figures


def test_how_far_behind_counts_what_the_sources_have_more() -> None:
    assert behind(batch(1, {"a": 100, "b": 3}, {"a": 130, "b": 5})) == 32
    assert behind({"sources": [{"endOffset": None, "latestOffset": None}, {"endOffset": '{"version": 3}'}]}) == 0


def test_rows_that_came_as_ranges_are_counted_by_the_offset() -> None:
    progress = batch(2, {"a": 130, "b": 5}, {"a": 130, "b": 5})
    assert rows_taken(progress) == 2
    offset = {"stream": "messages", "nodes": {"a": 130, "b": 5}, "begun": {"a": 100, "b": 0}, "tasks": True}
    progress["sources"] = [{"endOffset": json.dumps(offset)}]
    assert rows_taken(progress) == 35
    progress["sources"] = [{"startOffset": json.dumps(offset), "endOffset": json.dumps(offset)}]
    assert rows_taken(progress) == 0, "a batch without anything new names the last one's journal_offset"


def test_the_figures_are_answered_at_an_address() -> None:
    with (
        serving(Figures(), "127.0.0.1:0") as port,
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        assert answer.headers["Content-Type"] == CONTENT_TYPE and answer.read().endswith(b"# EOF\n")
    for address in ("nowhere", "host:port", "1.2.3.4:99999"):
        with pytest.raises(ConfigInvalid, match=r"metrics.address"), serving(Figures(), address):
            pass
