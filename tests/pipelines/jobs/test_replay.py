"""A replay leaves out expired messages and, on request, those that the node refuses; it reports how many of each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from godwit_pipelines.errors import ConfigInvalid
from godwit_pipelines.jobs import JOBS, Run
from godwit_pipelines.lake import Lake
from godwit_pipelines.settings import Config
from tests.pipelines.conftest import Runs
from tests.pipelines.journals import JournalWriter, message
from tests.pipelines.test_publish import scripted

NOW = datetime.now(UTC)


def refuse_some(body: list[dict[str, Any]]) -> tuple[int, Any]:
    """As a node that does not let /rooms/3 be published to; others are busy once in a while."""
    refused = {"error": 4114, "name": "PublishForbidden", "reason": "not yours", "retry": False}
    return 200, [refused if each["publish"] == "/rooms/3" else {"ok": "published", "at": "1.1"} for each in body]


def write(folder: Path) -> None:
    writer = JournalWriter(folder, node="a")
    fields: list[dict[str, Any]] = [{"expiry_s": None} for _ in range(20)]
    fields[4] = {"expiry_s": 60}
    fields[5] = {"expiry_s": 4_294_967_295}
    fields[6] = {"expiry_s": None, "reply_to": "/answers"}
    fields[7] = {"expiry_s": None, "content": b"{"}
    hour = timedelta(hours=1)
    writer.write([message(at, **{"time": NOW - hour, **each}) for at, each in enumerate(fields)])


def replay(spark: SparkSession, config: Config, **options: str) -> tuple[str, list[str]]:
    said: list[str] = []
    given = {"subjects": "/rooms/*", "name": "again", "publish": "yes", **options}
    job = JOBS["replay"]
    job.check(given)
    run = Run(spark=spark, config=config, lake=Lake(spark, config), job="replay", options=given, say=said.append)
    outcome = job.run(run)
    assert outcome is not None
    return outcome.text, [line for line in said if "skipped" in line]


def test_what_expired_or_is_refused_is_left_out_and_counted(
    tmp_path: Path, spark: SparkSession, config: Config, run_job: Runs
) -> None:
    write(tmp_path / "node-1")
    run_job("land", streams="messages")
    with scripted([refuse_some]) as (url, asked):
        config = replace(config, node=replace(config.node, url=url))
        with pytest.raises(Exception, match="PublishForbidden|valid JSON"):
            replay(spark, config)
        asked.clear()
        text, skipped = replay(spark, config, refused="skip")
        sent = [each for body in asked for each in body]
    assert len(sent) == 18, "all but the one that expired and the one that is no JSON"
    assert (
        text
        == "published 16 of 19 messages on 10 subjects; 3 refused; messages that already existed were not published again"
    )
    assert skipped[0] == "1 message skipped: expired (expiry_s)"
    assert skipped[1] == "2 messages skipped: refused by the node: /rooms/3: PublishForbidden (4114): not yours"
    assert skipped[2].startswith("1 message skipped: refused by the node: ") and "/rooms/7" in skipped[2]
    assert not any("reply_to" in each for each in sent), "nobody who answers requests answers these again"


def test_replies_are_awaited_again_only_where_that_is_wanted(
    tmp_path: Path, spark: SparkSession, config: Config, run_job: Runs
) -> None:
    write(tmp_path / "node-1")
    run_job("land", streams="messages")
    with scripted([refuse_some]) as (url, asked):
        config = replace(config, node=replace(config.node, url=url))
        replay(spark, config, refused="skip", replies="yes")
    assert [each["reply_to"] for body in asked for each in body if "reply_to" in each] == ["/answers"]
    with pytest.raises(ConfigInvalid, check=lambda error: error.key == "--option refused"):
        replay(spark, config, refused="perhaps")
