"""How often a limit was hit: each from its counter, codes counted once, null where nothing counts."""

from godwit.admin.limits import (
    COUNTED_BY_NODE,
    count_codes,
    describe,
)
from godwit.codes import Code
from godwit.config import build_config
from godwit.config.key_lines import KeyLines
from godwit.limits import LIMITS


def test_every_limit_has_its_row_and_every_row_its_limit() -> None:
    config = build_config({"limits": {"subjects_max": 100}}, {}, {}, key_lines=KeyLines("a.toml"))
    rows = describe(config, {})
    assert [row["name"] for row in rows] == [limit.name for limit in LIMITS]
    assert {*COUNTED_BY_NODE} <= {limit.name for limit in LIMITS}
    row = next(row for row in rows if row["name"] == "subjects_max")
    assert (row["value"], row["source"], row["code"]) == (100, "file a.toml", "SubjectsTooMany")
    assert not any(row["hits"] for row in rows), "an engine that reports nothing has counted nothing"


def test_hits_come_from_counters_and_codes() -> None:
    shards = [
        {"command_codes": {4120: 2}, "refused_codes": {4201: 3}, "close_codes": {}, "connections": 4, "streams": 1},
        {
            "command_codes": {},
            "refused_codes": {},
            "close_codes": {4202: 1},
            "connections": 5,
            "streams": 9,
            "window_misses": 6,
        },
    ]
    rows = {
        row["name"]: row for row in describe(build_config({}, {}, {}), {"messages_evicted_by_age": 7, "shards": shards})
    }
    hits = {name: row["hits"] for name, row in rows.items() if row["hits"]}
    assert hits == {
        "subjects_max": 2,
        "connections_max": 3,
        "idle_ms_max": 1,
        "log_age_ms_max": 7,
        "stream_window_bytes_max": 6,
    }
    assert rows["connections_max"]["used"] == 9 and rows["streams_per_shard_max"]["used"] == 9
    assert rows["conflate_ms_min"]["hits"] is None, "its code has other causes too"


def test_a_refused_request_is_counted_once() -> None:
    codes = count_codes([{"refused_codes": {4155: 2}, "close_codes": {4155: 2}, "command_codes": {4155: 1}}])
    assert codes == {int(Code.HEADER_TOO_BIG): 3}
