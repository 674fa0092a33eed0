"""Journals of real nodes that were recreated, continued from a copy, or copied under another name: every publish lands once."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.jobs import JOBS, Outcome, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.settings import Config
from tests.pipelines.node.serving import running_node
from tests.pipelines.node.test_journal_visible import publish


@pytest.mark.long
def test_what_was_published_lands_once_whatever_becomes_of_the_journal(
    tmp_path: Path, spark: SparkSession, config: Config
) -> None:
    config = replace(config, journal=replace(config.journal, paths=(str(tmp_path / "node-*/data"),)))
    lake, published, one = Lake(spark, config), Counter[str](), tmp_path / "node-1"

    def run(job: str) -> Outcome:
        return JOBS[job].run(Run(spark, config, lake, job=job, say=lambda _: None)) or Outcome()

    def serve(folder: Path, name: str, word: str, count: int) -> None:
        folder.mkdir(exist_ok=True)
        contents = [f"{word} {number}" for number in range(count)]
        with running_node(folder, "--set", f"node.name={name}") as url:
            publish(url, *(("/a/b", content) for content in contents))
        published.update(contents)

    def check() -> None:
        run("land")
        found = Counter(
            json.loads(row["content"]) for row in lake.read("bronze.messages").where("subject = '/a/b'").collect()
        )
        assert found == published
        assert run("reconcile").found == 0 and lake.read("bronze.quarantine").isEmpty()

    serve(one, "n1", "first", 20)
    check()
    shutil.copytree(one / "data", tmp_path / "copy")
    serve(one, "n1", "then", 30)
    check()
    shutil.rmtree(one / "data")
    shutil.copytree(tmp_path / "copy", one / "data")
    serve(one, "n1", "from the copy", 60)
    check()
    shutil.rmtree(one / "data")
    serve(one, "n1", "anew", 120)
    check()
    shutil.copytree(one / "data", tmp_path / "node-2/data")
    serve(tmp_path / "node-2", "n2", "under another name", 7)
    check()
    serve(one, "n1", "beside it", 9)
    check()
